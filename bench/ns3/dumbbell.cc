/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * N long TCP flows over one dumbbell in ns-3, for bench/ns3/run.py.
 *
 *	sender 0 --access--\                                  /--access-- receiver 0
 *	sender 1 --access--- router ==== bottleneck ==== router ---access-- receiver 1
 *	   ...            /                                   \   ...
 *
 * Prints one JSON object.  A packet-hop is a packet (data or ACK) received at
 * the far end of one link; wall and processor time are those of
 * Simulator::Run alone.  No logging, no pcap, no flow monitor.
 *
 * ns-3 searches a node's interfaces and routes one by one for every packet, so
 * a router with a thousand access links is slow.  --hosts lets several flows
 * share a pair of hosts and its links; the bottleneck stays the same.
 *
 * Linked with ns-3 (GPL-2.0-only), so this file carries that licence; nothing
 * else in the project links with it.
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

using namespace ns3;

static uint64_t packet_hops;

static void
packet_received(Ptr<const Packet>)
{
    packet_hops++;
}

static void
count_hops(const NetDeviceContainer& devices)
{
    for (uint32_t i = 0; i < devices.GetN(); i++)
    {
        devices.Get(i)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&packet_received));
    }
}

int
main(int argc, char** argv)
{
    uint32_t flows = 1;
    uint32_t hosts = 0;
    double seconds = 10;
    uint64_t access_bps = 1000000000;
    uint64_t bottleneck_bps = 100000000;
    double access_ms = 1;
    double bottleneck_ms = 10;
    uint32_t queue_packets = 1000;
    uint32_t mss = 1448;
    uint32_t delayed_ack = 2;
    uint32_t buffer_bytes = 6 << 20;
    double start_jitter_ms = 100;
    std::string congestion = "cubic";

    CommandLine cmd(__FILE__);
    cmd.AddValue("flows", "number of flows", flows);
    cmd.AddValue("hosts", "pairs of hosts that share the flows; 0: one for each flow", hosts);
    cmd.AddValue("seconds", "simulated time", seconds);
    cmd.AddValue("access-bps", "rate of every access link", access_bps);
    cmd.AddValue("bottleneck-bps", "rate of the shared link", bottleneck_bps);
    cmd.AddValue("access-ms", "one-way delay of every access link", access_ms);
    cmd.AddValue("bottleneck-ms", "one-way delay of the shared link", bottleneck_ms);
    cmd.AddValue("queue", "queue of the shared link in packets", queue_packets);
    cmd.AddValue("mss", "payload of a full segment", mss);
    cmd.AddValue("delayed-ack", "segments for one ACK", delayed_ack);
    cmd.AddValue("buffer", "send and receive buffer in bytes", buffer_bytes);
    cmd.AddValue("start-jitter-ms", "flows start within this time", start_jitter_ms);
    cmd.AddValue("congestion", "cubic | newreno", congestion);
    cmd.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       StringValue(congestion == "cubic" ? "ns3::TcpCubic" : "ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(delayed_ack));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer_bytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer_bytes));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::Ipv4GlobalRouting::RandomEcmpRouting", BooleanValue(false));

    NodeContainer routers;
    NodeContainer senders;
    NodeContainer receivers;
    routers.Create(2);
    if (hosts == 0 || hosts > flows)
    {
        hosts = flows;
    }
    senders.Create(hosts);
    receivers.Create(hosts);

    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.InstallAll();

    const std::string queue_size = std::to_string(queue_packets) + "p";
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", DataRateValue(DataRate(bottleneck_bps)));
    bottleneck.SetChannelAttribute("Delay", TimeValue(Seconds(bottleneck_ms / 1e3)));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue_size));
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(access_bps)));
    access.SetChannelAttribute("Delay", TimeValue(Seconds(access_ms / 1e3)));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Ipv4StaticRoutingHelper routing;
    TrafficControlHelper disciplines;

    NetDeviceContainer shared = bottleneck.Install(routers);
    count_hops(shared);
    Ipv4InterfaceContainer shared_if = addresses.Assign(shared);
    /* Only the device's own queue holds packets: Assign put FQ-CoDel above it. */
    disciplines.Uninstall(shared);
    addresses.NewNetwork();

    ApplicationContainer sinks;
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < hosts; i++)
    {
        NetDeviceContainer left = access.Install(senders.Get(i), routers.Get(0));
        NetDeviceContainer right = access.Install(routers.Get(1), receivers.Get(i));
        count_hops(left);
        count_hops(right);
        Ipv4InterfaceContainer left_if = addresses.Assign(left);
        addresses.NewNetwork();
        Ipv4InterfaceContainer right_if = addresses.Assign(right);
        addresses.NewNetwork();
        disciplines.Uninstall(left);
        disciplines.Uninstall(right);

        routing.GetStaticRouting(senders.Get(i)->GetObject<Ipv4>())
            ->SetDefaultRoute(left_if.GetAddress(1), 1);
        routing.GetStaticRouting(receivers.Get(i)->GetObject<Ipv4>())
            ->SetDefaultRoute(right_if.GetAddress(0), 1);

        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), 5001));
        sinks.Add(sink.Install(receivers.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory",
                            InetSocketAddress(right_if.GetAddress(1), 5001));
        bulk.SetAttribute("SendSize", UintegerValue(65536));
        for (uint32_t flow = i; flow < flows; flow += hosts)
        {
            ApplicationContainer source = bulk.Install(senders.Get(i));
            source.Start(Seconds(flows > 1 ? start->GetValue(0, start_jitter_ms / 1e3) : 0));
        }
    }
    routing.GetStaticRouting(routers.Get(0)->GetObject<Ipv4>())
        ->SetDefaultRoute(shared_if.GetAddress(1), 1);
    routing.GetStaticRouting(routers.Get(1)->GetObject<Ipv4>())
        ->SetDefaultRoute(shared_if.GetAddress(0), 1);

    Simulator::Stop(Seconds(seconds));
    const auto before = std::chrono::steady_clock::now();
    const std::clock_t cpu_before = std::clock();
    Simulator::Run();
    const double cpu_s = double(std::clock() - cpu_before) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - before;

    uint64_t delivered = 0;
    for (uint32_t i = 0; i < sinks.GetN(); i++)
    {
        delivered += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    std::printf("{\"flows\": %u, \"hosts\": %u, \"simulated_s\": %.6f, \"packet_hops\": %llu, \"wall_s\": %.6f, "
                "\"cpu_s\": %.6f, \"hops_per_s\": %.0f, \"goodput_bps\": %.0f}\n",
                flows,
                hosts,
                seconds,
                (unsigned long long)packet_hops,
                wall.count(),
                cpu_s,
                packet_hops / cpu_s,
                delivered * 8 / seconds);
    Simulator::Destroy();
    return 0;
}
