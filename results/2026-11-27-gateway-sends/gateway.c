#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <net/if.h>
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/can.h>
#include <linux/can/raw.h>
#include <linux/filter.h>
#define N 2048
#define SZ 128
#define CK(x) do { if ((x) < 0) { perror(#x); exit(1); } } while (0)
/*
 * The smallest gateway from can3 to can4: receives by a PF_PACKET ring, spinning on processor 1, and sends one frame a call.
 * Letters of its argument: a receives by ETH_P_ALL; f drops frames with a mark, by BPF; w write(2), s sendmsg(2), n
 * MSG_DONTWAIT instead of send(2); L with CAN_RAW_LOOPBACK; P a packet socket with PACKET_QDISC_BYPASS instead of CAN_RAW, D
 * one of SOCK_DGRAM; b bound to the protocol, so that a call needs no address; q without PACKET_QDISC_BYPASS.
 */
int main(int c, char **v) {
	const char *x = v[1]; int in = if_nametoindex("can3"), out = if_nametoindex("can4"), one = 1, zero = 0;
#define H(ch) (strchr(x, ch) != NULL)
	cpu_set_t set; CPU_ZERO(&set); CPU_SET(H('0') ? 0 : 1, &set); CK(sched_setaffinity(0, sizeof set, &set));
	int rx = socket(AF_PACKET, SOCK_RAW, 0); CK(rx);
	if (H('f')) {
		struct sock_filter f[] = { {0x20,0,0,(unsigned)(SKF_AD_OFF+SKF_AD_MARK)}, {0x15,0,1,in}, {6,0,0,0}, {6,0,0,0xffff} };
		struct sock_fprog p = { 4, f }; CK(setsockopt(rx, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p));
	}
	int ver = TPACKET_V2; CK(setsockopt(rx, SOL_PACKET, PACKET_VERSION, &ver, sizeof ver));
	struct tpacket_req rq = { 4096, N * SZ / 4096, SZ, N };
	CK(setsockopt(rx, SOL_PACKET, PACKET_RX_RING, &rq, sizeof rq));
	char *m = mmap(0, N * SZ, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, rx, 0);
	struct sockaddr_ll l = { .sll_family = AF_PACKET, .sll_protocol = htons(H('a') ? 3 : 0xc), .sll_ifindex = in };
	if (H('a')) CK(setsockopt(rx, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one));
	CK(bind(rx, (void *)&l, sizeof l));
	int pk = H('P') || H('D'), tx;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0xc), .sll_ifindex = out };
	if (pk) {
		tx = socket(AF_PACKET, H('D') ? SOCK_DGRAM : SOCK_RAW, 0); CK(tx);
		CK(setsockopt(tx, SOL_SOCKET, SO_MARK, &out, sizeof out));
		if (!H('q')) CK(setsockopt(tx, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one));
		struct sockaddr_ll b = to;
		if (H('b')) {
			struct sock_filter f[] = { {6,0,0,0} }; struct sock_fprog p = { 1, f };
			CK(setsockopt(tx, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p));
		} else b.sll_protocol = 0;
		CK(bind(tx, (void *)&b, sizeof b));
	} else {
		tx = socket(AF_CAN, SOCK_RAW, CAN_RAW); CK(tx);
		CK(setsockopt(tx, SOL_CAN_RAW, CAN_RAW_FILTER, 0, 0));
		if (!H('L')) CK(setsockopt(tx, SOL_CAN_RAW, CAN_RAW_LOOPBACK, &zero, sizeof zero));
		struct sockaddr_can a = { .can_family = AF_CAN, .can_ifindex = out }; CK(bind(tx, (void *)&a, sizeof a));
	}
	unsigned i = 0; struct can_frame fr;
	struct iovec io = { &fr, 16 }; struct msghdr mh = { .msg_iov = &io, .msg_iovlen = 1 };
	if (pk && !H('b')) { mh.msg_name = &to; mh.msg_namelen = sizeof to; }
	fprintf(stderr, "gw %s\n", x);
	for (;;) {
		struct tpacket2_hdr *h = (void *)(m + i * SZ);
		while (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) __builtin_ia32_pause();
		memcpy(&fr, (char *)h + h->tp_mac, 16);
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		i = (i + 1) % N; int r;
		if (H('w')) r = write(tx, &fr, 16);
		else if (H('s')) r = sendmsg(tx, &mh, 0);
		else r = sendto(tx, &fr, 16, H('n') ? MSG_DONTWAIT : 0, mh.msg_name, mh.msg_namelen);
		if (r < 0) perror("send");
		__builtin_ia32_pause();
	}
}
