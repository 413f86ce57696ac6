# SPDX-License-Identifier: MIT
"""The stories: what was reported, where, and which half of them may be used for tuning.

The split is by story, not by case: variations of one story fail together. It was drawn and
committed before the first capture. The later draws, committed before their first captures as well,
are of stories that were collected once rules had been tuned with those before: all of them judge.
"""

import random
from dataclasses import dataclass

TUNING, JUDGING = "tuning", "judging"
LATER = ("judging2", "judging3", "judging4")
SPLITS = (TUNING, JUDGING, *LATER)
_SEED = "stories of slow transfers"
_GITHUB = "https://github.com/"


@dataclass(frozen=True)
class Story:
    """What was reported; nothing of it is copied but facts."""

    name: str
    title: str
    addresses: tuple[str, ...]

    @property
    def split(self) -> str:
        """Whether rules may be tuned with it."""
        for split, draw in zip(LATER, LATER_DRAWS, strict=True):
            if self in draw:
                return split
        return TUNING if self.name in _tuning() else JUDGING


def _github(*threads: str) -> tuple[str, ...]:
    """`owner/name#number`; GitHub leads from an issue's address to a pull request."""
    return tuple(_GITHUB + thread.replace("#", "/issues/") for thread in threads)


FIRST_DRAW = (
    Story(
        "split-response",
        "A server writes head and body of a small answer apart, Nagle's algorithm on",
        _github("openwrt/uhttpd#34", "http-rs/async-h1#199", "chmorgan/libesphttpd#54"),
    ),
    Story(
        "split-query",
        "A database client writes a query in two parts, Nagle's algorithm on",
        _github("npgsql/npgsql#1338", "transact-rs/sqlx#3043", "postgresml/pgcat#749"),
    ),
    Story(
        "sftp-few-requests",
        "SFTP with few outstanding requests over a long distance",
        _github("hierynomus/sshj#1051", "pkg/sftp#158", "libfuse/sshfs#300"),
    ),
    Story(
        "ssh-channel-window",
        "A small SSH channel window limits an upload or download",
        _github("paramiko/paramiko#175", "rapier1/hpn-ssh#89"),
    ),
    Story(
        "http2-upload-window",
        "HTTP/2 uploads stop at the server's flow-control window",
        _github("haproxy/haproxy#293", "nginx/nginx#857"),
    ),
    Story(
        "http2-download-window",
        "HTTP/2 and gRPC downloads stop at the client's flow-control window",
        _github("curl/curl#1102", "nghttp2/nghttp2#287", "grpc/grpc-go#1043"),
    ),
    Story(
        "fixed-receive-buffer",
        "SO_RCVBUF turns autotuning off",
        _github("mariadb-corporation/galera#552", "helidon-io/helidon#10800", "esnet/iperf#481"),
    ),
    Story(
        "fixed-send-buffer",
        "SO_SNDBUF turns autotuning off",
        _github("debops/ansible-samba#15", "expressvpn/lightway#437", "lance0/xfr#60"),
    ),
    Story(
        "window-scale-stripped",
        "A firewall removes the window scale option",
        (
            "https://techgenix.com/tcp-window-scaling-slow-downloads/",
            "http://kb.pert.geant.net/PERTKB/WindowScalingProblems",
        ),
    ),
    Story(
        "embedded-window",
        "A microcontroller has memory for a few segments only",
        _github("esp8266/Arduino#4176", "esp8266/Arduino#1577"),
    ),
    Story(
        "deep-queue",
        "Bufferbloat: a modem queues seconds of data",
        (
            "https://gettys.wordpress.com/2010/12/06/whose-house-is-of-glasse-must-not-throw-stones-at-another/",
            "https://www.mikekasberg.com/blog/2017/06/21/bufferbloat.html",
        ),
    ),
    Story(
        "policed",
        "A provider drops what exceeds a rate, without a queue",
        (
            "https://rule11.tech/policing-shaping-and-performance/",
            "https://www.networkdatapedia.com/post/2018/12/20/slow-transfer-packet-losses-congestion-avoidance-shaping-and-policing",
        ),
    ),
    Story(
        "random-loss",
        "CUBIC on a path that loses packets at random",
        _github("private-octopus/picoquic#1221", "TrustTunnel/TrustTunnel#49"),
    ),
    Story(
        "bbr",
        "BBR where CUBIC was expected: losses that do not slow it down",
        _github("litespeedtech/lsquic#233", "kata-containers/packaging#1069"),
    ),
    Story(
        "slow-reader",
        "The receiving application reads at its own pace",
        (
            "https://ndi-com.com/title-title-title-7/",
            *_github("KallistiOS/KallistiOS#1450"),
        ),
    ),
    Story(
        "stalling-disk",
        "The receiver stops reading for seconds while it writes or unpacks",
        _github("coreos/coreos-installer#184", "openzfs/zfs#4281", "balena-io/etcher#1171"),
    ),
    Story(
        "throttled-server",
        "The sending application keeps to a rate of its own",
        _github("jellyfin-archive/jellyfin-docs#539", "sshfortress/sshfortress#2"),
    ),
    Story(
        "slow-answer",
        "The server thinks before it answers",
        (
            "https://oneuptime.com/blog/post/2026-03-20-wireshark-slow-http-response/view",
            "https://www.websiteoptimization.com/speed/tweak/time-to-first-byte/",
        ),
    ),
    Story(
        "one-request-at-a-time",
        "Each request waits for the answer to the previous one, over a distance",
        ("https://redis.io/topics/pipelining/", *_github("qgis/QGIS#42230")),
    ),
    Story(
        "block-by-block",
        "Each block waits until the previous one is confirmed",
        _github("maxiepax/go-via#4", "tianocore/edk2#7264"),
    ),
    Story(
        "mtu-black-hole",
        "Large packets vanish and no ICMP message says so",
        _github(
            "QubesOS/qubes-issues#5264", "moby/moby#22495", "Start9Labs/start-technologies#3308"
        ),
    ),
    Story(
        "upload-and-download",
        "An upload fills the uplink that the download's ACKs need",
        (
            "http://www.braindeadprojects.com/ancient/web/files/DOCSIS/cmtips/downup.html",
            "https://www.starcoder.com/wordpress/2016/03/fixing-bufferbloat-on-the-zywall-110/",
        ),
    ),
    Story(
        "narrow-uplink",
        "The uplink is too slow even for the ACKs",
        (
            "https://elook.org/en-bd/rfc/rfc3449-2.html",
            "https://www.semanticscholar.org/paper/How-Network-Asymmetry-Affects-TCP-1-Padmanabhan/0177a10e64de8cbc86352dad6d7d614c0c26456f",
        ),
    ),
    Story(
        "lossy-uplink",
        "ACKs are lost, data is not",
        (
            "https://m.everything2.com/title/How+to+overcome+the+ADSL+and+Cable+problem+of+downstream+slowdown+during+upstream+saturation",
        ),
    ),
    Story(
        "lost-tail",
        "The last packet of a short answer is lost, and the timer repairs it",
        (
            "https://tools.ietf.org/html/draft-dukkipati-tcpm-tcp-loss-probe-00",
            "http://friendfeed.com/shalunov/ed30d531/re-mean-delay-considered-harmful",
        ),
    ),
    Story(
        "idle-keep-alive",
        "A connection is kept open and seldom used",
        _github("home-assistant/operating-system#4239", "esnet/iperf#270", "k4yt3x/sysctl#6"),
    ),
    Story(
        "idle-then-closed",
        "A server closes a connection after it was idle for its timeout",
        _github("pi-hole/FTL#2357"),
    ),
    Story(
        "reset",
        "A download ends in the middle with a reset",
        _github("NixOS/nix#9766", "curl/curl#1016"),
    ),
    Story(
        "short-transfers",
        "A page of small files over a long distance: over before the window has grown",
        _github("k4yt3x/sysctl#6", "pi-hole/FTL#2357"),
    ),
    Story(
        "tls-each-time",
        "A new TLS connection for each request",
        _github("DataZooDE/erpl-web#157", "Next21Team/AmxxEasyHttp#8", "libressl/portable#1143"),
    ),
    Story(
        "parallel",
        "Several connections share the link",
        _github("esnet/iperf#481", "arvidn/libtorrent#3542"),
    ),
    Story(
        "rsync-ssh",
        "rsync over SSH is slower than the link",
        (
            "https://serverfault.com/questions/434724/multi-thread-rsync-transfer",
            "https://lists.samba.org/archive/rsync/2018-April/031608.html",
        ),
    ),
    Story(
        "ecn",
        "A queue marks packets instead of dropping them",
        _github("LibreQoE/LibreQoS#1", "NTAP/rfc8312bis#11"),
    ),
    Story(
        "clamped-mss",
        "A tunnel clamps the MSS, in one direction or both",
        _github(
            "SamNet-dev/MTProxyMax#124",
            "XTLS/Xray-core#6522",
            "rcmcdonald91/pfSense-pkg-WireGuard#93",
        ),
    ),
    Story(
        "other-mtu",
        "An MTU of 900 or of 9000 bytes",
        _github("moby/moby#20628", "docker/hub-feedback#487"),
    ),
    Story(
        "ipv6",
        "IPv6, through a tunnel with a smaller MTU",
        _github("guardian/dotcom-rendering#6297", "WireGuard/wireguard-vyatta-ubnt#110"),
    ),
    Story(
        "offload",
        "A capture at a host with segmentation offload shows packets of 64 KB",
        (
            "http://packetbomb.com/how-can-the-packet-size-be-greater-than-the-mtu/",
            "http://www.unleashnetworks.com/blog/?p=307",
        ),
    ),
    Story(
        "smb",
        "A file server of Windows shares over a distance",
        (
            "https://repo.or.cz/Samba.git/blob/050f8312404a77e6afea4b628a05d7047bcaf226:/docs-xml/smbdotconf/tuning/socketoptions.xml",
            "https://linuxtopia.org/online_books/network_administration_guides/using_samba_book/appb_02_04.html",
        ),
    ),
    Story(
        "expect-continue",
        "curl waits a second for a 100 Continue that never comes",
        _github("yhirose/cpp-httplib#349", "curl/curl#953", "Paradigm4/shim#42"),
    ),
    Story(
        "handover",
        "Nothing passes for seconds while a phone changes its access point",
        _github("intrig-unicamp/mininet-wifi#406", "h2o/quicly#689", "espressif/esp-idf#11936"),
    ),
)


SECOND_DRAW = (
    Story(
        "mqtt-inflight",
        "MQTT publishes wait for the broker's confirmations of the last few",
        _github("eclipse-paho/paho.mqtt.c#424", "turbolytics/sql-flow#200"),
    ),
    Story(
        "ftp-buffers",
        "FTP with the socket buffers of its client, over a distance",
        _github(
            "michaellukashov/Far-NetBox#140",
            "lavv17/lftp#209",
            "Bostwickenator/FtpPhotosUploader#13",
        ),
    ),
    Story(
        "row-by-row",
        "Each row of a database import is a statement that waits for its answer",
        _github("datajoint/datajoint-matlab#50", "adamziel/reprint#173", "vitessio/vitess#14529"),
    ),
    Story(
        "cursor-batches",
        "A database client fetches a result some rows at a time",
        _github("trinodb/trino#16153", "pgjdbc/pgjdbc#292"),
    ),
    Story(
        "token-stream",
        "A server streams small events as it makes them",
        _github("hyperium/hyper#3269", "vercel/ai#17007"),
    ),
    Story(
        "interference",
        "A radio link loses everything for a part of a second, again and again",
        _github("wilbowes/EchoMuse#139", "lwfinger/rtlwifi_new#28", "OpenBCI/OpenBCI_WIFI#63"),
    ),
    Story(
        "one-way-firewall",
        "A firewall on an asymmetric route drops what comes back",
        _github("firehol/firehol#358", "metallb/metallb#297", "opnsense/core#4478"),
    ),
    Story(
        "reordered",
        "Bonded links put packets out of order",
        _github("zehome/MLVPN#100", "Ysurac/openmptcprouter#1359"),
    ),
    Story(
        "video-segments",
        "A player whose buffer is full fetches a segment now and then",
        _github("google/ExoPlayer#565", "denivip/osmf-hls-plugin#47"),
    ),
    Story(
        "block-device",
        "A network block device with few requests at a time",
        _github("accelio/accelio#120", "lf-edge/eve#5818"),
    ),
    Story(
        "slow-consumer",
        "A WebSocket client takes longer for a message than the server for the next",
        _github("websockets/ws#1218", "purplefish-ai/factory-factory#492"),
    ),
    Story(
        "slow-upstream",
        "A reverse proxy passes on what a slow server behind it gives",
        _github("jellyfin/jellyfin#1663", "SvanBoxel/sandbox#11"),
    ),
    Story(
        "compressing-sender",
        "A backup is sent as fast as one processor compresses it",
        _github("github/backup-utils#490", "HULKs/hulk#833", "wisp-gg/issue-tracker#34"),
    ),
    Story(
        "last-chunk",
        "The end of a chunked response waits for an ACK",
        _github("nodejs/node-v0.x-archive#5204", "oven-sh/bun#4010"),
    ),
    Story(
        "satellite",
        "Small transfers over a geostationary satellite",
        (
            "http://impossibleknowledge.blogspot.com/2012/09/long-round-trip-time-rtt.html",
            "http://webspeedup.blogspot.com/2010/04/internet-over-high-latency-connection.html",
        ),
    ),
    Story(
        "git-clone",
        "A large repository is cloned over a slow or a lossy link",
        _github("anacrolix/dht#8", "m-ab-s/media-autobuild_suite#1132"),
    ),
    Story(
        "aggregated",
        "A radio link delivers packets in bursts",
        _github("LibreQoE/LibreQoS#40", "private-octopus/picoquic#1481"),
    ),
)

THIRD_DRAW = (
    Story(
        "chunked-upload",
        "A file is uploaded in chunks, each of which waits for the answer to the one before",
        _github(
            "googleapis/google-cloud-swift#886",
            "jjmutumi/tus_client#28",
            "googleapis/nodejs-storage#2151",
        ),
    ),
    Story(
        "range-reads",
        "A remote file system reads a file in pieces, without reading ahead",
        _github("Sohex/musefs#255", "GoogleCloudPlatform/gcsfuse#365"),
    ),
    Story(
        "scanning-proxy",
        "A proxy that scans a download passes on a little of it now and then",
        _github("genotrance/px#89"),
    ),
    Story(
        "tunnel-mtu",
        "An upload through a VPN hangs: its packets are too large, and no ICMP message says so",
        _github("microsoft/WSL#4994", "adrienverge/openfortivpn#184"),
    ),
    Story(
        "policed-port",
        "A virtual switch polices what a guest sends",
        _github(
            "mininet/mininet#1084", "kubeovn/kube-ovn#141", "ovn-kubernetes/ovn-kubernetes#880"
        ),
    ),
    Story(
        "both-ways",
        "A transfer in each direction, at the same time",
        _github("esnet/iperf#1836", "esnet/iperf#201"),
    ),
    Story(
        "network-boot",
        "A boot loader downloads a system with a window of two segments",
        _github("ipxe/ipxe#1170", "zephyrproject-rtos/zephyr#45844"),
    ),
    Story(
        "camera",
        "A camera sends its frames over TCP",
        _github("bluenviron/mediamtx#902", "mpromonet/v4l2rtspserver#6"),
    ),
    Story(
        "header-then-body",
        "A key-value client writes the head of a request apart from its body, Nagle's algorithm on",
        _github("basho/riak-python-client#279", "dragonflydb/dragonfly#1910"),
    ),
    Story(
        "power-save",
        "A radio sleeps between beacons, and a device is asked for one thing at a time",
        _github(
            "forkineye/ESPixelStick#459",
            "espressif/arduino-esp32#1484",
            "me-no-dev/ESPAsyncWebServer#437",
        ),
    ),
)

FOURTH_DRAW = (
    Story(
        "fixed-window-copy",
        "A table is copied from a database with a receive window that the system holds fixed",
        _github("pgjdbc/pgjdbc#1724", "Kirari04/p2pstream#234"),
    ),
    Story(
        "slow-log-server",
        "A log server takes in syslog over TCP more slowly than it is written",
        _github(
            "fluent/fluent-bit#8455",
            "open-telemetry/opentelemetry-collector-contrib#49745",
            "svetob/logstash-json#18",
        ),
    ),
    Story(
        "bonus-round-trip",
        "A client of a web service writes the headers of a call apart from its body",
        _github(
            "smithy-lang/smithy-rs#4677", "Azure/azure-sdk-for-node#760", "anmonteiro/httpun#103"
        ),
    ),
    Story(
        "heartbeat",
        "A stream of events is idle but for a heartbeat or a snapshot now and then",
        _github("stellar/go-stellar-sdk#678", "everruns/everruns#603"),
    ),
    Story(
        "capped-upload",
        "A backup client holds its upload to a configured rate",
        _github("boto/boto3#1430", "boto/boto#1625", "s3tools/s3cmd#913"),
    ),
    Story(
        "uplink-bloat",
        "An upload fills seconds of queue in front of a slow uplink",
        _github("Ansuel/tch-nginx-gui#1002", "danopstech/starlink#3"),
    ),
    Story(
        "ingress-policer",
        "A container's ingress is policed with a burst that is too small",
        _github("sonm-io/core#968"),
    ),
    Story(
        "cross-border",
        "CUBIC on a long path that loses a percent or more",
        _github("heypandax/pairlet#140", "litespeedtech/lsquic#142"),
    ),
    Story(
        "distant-calls",
        "HTTP/2 calls to a distant region, one at a time",
        _github("grpc/grpc-go#5599", "dimitri/pgcopydb#704"),
    ),
    Story(
        "labile-wifi",
        "An upload over a WLAN that is gone for seconds, twice",
        _github("owncloud/client#1471", "sebastinas/yafc#17"),
    ),
    Story(
        "distant-ssh",
        "The channel window of OpenSSH limits a transfer between continents",
        _github("rapier1/hpn-ssh#58", "databricks/cli#6689"),
    ),
)
LATER_DRAWS = (SECOND_DRAW, THIRD_DRAW, FOURTH_DRAW)
STORIES = sum(LATER_DRAWS, FIRST_DRAW)


def _tuning() -> frozenset[str]:
    names = sorted(story.name for story in FIRST_DRAW)
    return frozenset(random.Random(_SEED).sample(names, len(names) // 2))  # noqa: S311
