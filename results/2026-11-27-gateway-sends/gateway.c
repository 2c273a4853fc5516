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
#include <linux/io_uring.h>
#include <sys/syscall.h>
#define N 2048
#define SZ 128
#define CK(x) do { if ((x) < 0) { perror(#x); exit(1); } } while (0)
/*
 * The smallest gateway from can3 to can4: receives by a PF_PACKET ring, spinning on processor 1, and sends one frame a call.
 * Letters of its argument: a receives by ETH_P_ALL; f drops frames with a mark, by BPF; w write(2), s sendmsg(2), n
 * MSG_DONTWAIT instead of send(2); L with CAN_RAW_LOOPBACK; P a packet socket with PACKET_QDISC_BYPASS instead of CAN_RAW, D
 * one of SOCK_DGRAM; b bound to the protocol, so that a call needs no address; q without PACKET_QDISC_BYPASS; T a ring for
 * sending on such a socket, and send(2) of no bytes; u a submission of io_uring for each frame, U with SQPOLL: a thread of
 * the kernel on processor 0, which looks for submissions, and no call.
 */
/* One submission at a time: IORING_OP_SEND of the frame. */
static struct { int fd; unsigned *tail, *flags, *chead, *ctail, mask; struct io_uring_sqe *sqe; } u;
static void uring_open(int poll) {
	struct io_uring_params p = { .flags = poll ? IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF : IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, .sq_thread_cpu = 0, .sq_thread_idle = 1000000 };
	CK(u.fd = syscall(SYS_io_uring_setup, 8, &p));
	char *r = mmap(0, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe) + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u.fd, IORING_OFF_SQ_RING);
	u.sqe = mmap(0, p.sq_entries * sizeof *u.sqe, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u.fd, IORING_OFF_SQES);
	if (r == MAP_FAILED || u.sqe == MAP_FAILED) { perror("mmap"); exit(1); }
	u.tail = (void *)(r + p.sq_off.tail); u.flags = (void *)(r + p.sq_off.flags); u.mask = p.sq_entries - 1;
	u.chead = (void *)(r + p.cq_off.head); u.ctail = (void *)(r + p.cq_off.tail);
	for (unsigned i = 0; i < p.sq_entries; i++) ((unsigned *)(r + p.sq_off.array))[i] = i;
}
static int uring_send(int tx, void *frame, int poll) {
	unsigned tail = *u.tail; struct io_uring_sqe *e = u.sqe + (tail & u.mask);
	*e = (struct io_uring_sqe){ .opcode = IORING_OP_SEND, .fd = tx, .addr = (unsigned long)frame, .len = 16, .msg_flags = MSG_DONTWAIT };
	__atomic_store_n(u.tail, tail + 1, __ATOMIC_RELEASE);
	if (!poll) return syscall(SYS_io_uring_enter, u.fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0);
	while (__atomic_load_n(u.ctail, __ATOMIC_ACQUIRE) == *u.chead) {
		if (__atomic_load_n(u.flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP) syscall(SYS_io_uring_enter, u.fd, 0, 0, IORING_ENTER_SQ_WAKEUP, 0, 0);
		__builtin_ia32_pause();
	}
	return 0;
}
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
	int pk = H('P') || H('D') || H('T'), tx, j = 0; char *t = 0;
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
		if (H('T')) {
			CK(setsockopt(tx, SOL_PACKET, PACKET_VERSION, &ver, sizeof ver));
			CK(setsockopt(tx, SOL_PACKET, PACKET_TX_RING, &rq, sizeof rq));
			t = mmap(0, N * SZ, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, tx, 0);
			if (t == MAP_FAILED) { perror("mmap"); exit(1); }
		}
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
	const int ring = H('u') || H('U'), poll = H('U');
	if (ring) uring_open(poll);
	fprintf(stderr, "gw %s\n", x);
	for (;;) {
		struct tpacket2_hdr *h = (void *)(m + i * SZ);
		while (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) __builtin_ia32_pause();
		memcpy(&fr, (char *)h + h->tp_mac, 16);
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		i = (i + 1) % N; int r;
		if (H('w')) r = write(tx, &fr, 16);
		else if (H('s')) r = sendmsg(tx, &mh, 0);
		else if (ring) {
			r = uring_send(tx, &fr, poll);
			if (r >= 0) __atomic_store_n(u.chead, __atomic_load_n(u.ctail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
		} else if (t) {
			struct tpacket2_hdr *th = (void *)(t + j * SZ);
			memcpy((char *)th + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll), &fr, 16);
			th->tp_len = 16; __atomic_store_n(&th->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
			j = (j + 1) % N; r = sendto(tx, 0, 0, MSG_DONTWAIT, mh.msg_name, mh.msg_namelen);
		} else r = sendto(tx, &fr, 16, H('n') ? MSG_DONTWAIT : 0, mh.msg_name, mh.msg_namelen);
		if (r < 0) perror("send");
		__builtin_ia32_pause();
	}
}
