# SPDX-License-Identifier: MIT
# Written by tools/openwrt.py from python/ackwise/gateway/router.py.

BEGIN {
	GUARANTEE_OF_DEMAND = 1.25
	GUARANTEE_MAX = 0.5
	THIN_ABOVE = 0.06
	THIN_TO_SEGMENTS = 3
	THIN_MAX = 0.15
	SHARE_MIN = 0.02
	LEAF_PACKETS = 100
	THIN_LEAF_NS = 50000000
	THIN_LEAF_LEAST = 4
	THIN_LEAF_MOST = 100
	INTERFERES_BELOW = 0.9
	IPV4_BYTES = 20
	IPV6_BYTES = 40
	TCP_BYTES = 20
	TIMESTAMP_BYTES = 12
	SACK_FIRST_BYTES = 12
	SACK_MORE_BYTES = 8
	PLAIN_DATA_NS = 100000000
	PLAIN_DATA_LEAST = 16
	ASSUMED_MTU_BYTES = 1500
	MTU_BYTES_MAX = 65535
	OVERHEAD_MAX_BYTES = 256
	CELL_BYTES = 53
	CELL_PAYLOAD_BYTES = 48
	BURST_NS = 1000000
	THINNING_LEAVES = "cake pfifo_head_drop"
	DATA_LEAVES = "fq_codel pfifo"
	LEAF_KINDS = "pfifo pfifo_head_drop bfifo fq_codel cake"
	LAYERS = "header vlan pppoe pppoe-vlan pppoe-ptm ethernet docsis atm atm-pppoa atm-bridged ip"
	FRAMINGS = "ethernet ip"
	OVERHEAD_LEFT_OUT = "the queue counts the Ethernet header, which option overhead leaves out: the uplink gets a little less than its rate"
	HEADER_BYTES["ethernet"] = 14
	HEADER_BYTES["ip"] = 0
	LAYER["header"] = "14 0 0"
	LAYER["vlan"] = "18 0 0"
	LAYER["pppoe"] = "22 0 0"
	LAYER["pppoe-vlan"] = "26 0 0"
	LAYER["pppoe-ptm"] = "30 0 0"
	LAYER["ethernet"] = "38 84 0"
	LAYER["docsis"] = "18 64 0"
	LAYER["atm"] = "40 0 1"
	LAYER["atm-pppoa"] = "10 0 1"
	LAYER["atm-bridged"] = "32 0 1"
	LAYER["ip"] = "0 0 0"
	LEAF["pfifo"] = "pfifo limit %d"
	LEAF["pfifo_head_drop"] = "pfifo_head_drop limit %d"
	LEAF["bfifo"] = "bfifo limit %d"
	LEAF["fq_codel"] = "fq_codel limit %d target 40000us interval 200000us"
	LEAF["cake"] = "cake unlimited besteffort ack-filter rtt 800000us"
	PLAIN["pfifo"]
	PLAIN["bfifo"]
}
