// SPDX-License-Identifier: GPL-2.0-only
/* Netlink messages: made of drawn attributes, sent, and their answers read to the end. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "../../uapi/canwire.h"
#include "fuzz.h"

void message_begin(struct message *message, struct worker *worker, uint16_t type, uint16_t flags)
{
	struct nlmsghdr header = { .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags };

	*message = (struct message){ .worker = worker, .bytes = worker->scratch };
	message_put(message, &header, sizeof(header));
}

/* Appends, aligned to four bytes. */
void *message_put(struct message *message, const void *data, unsigned int bytes)
{
	char *at = message->bytes + message->len;

	if (message->len + bytes + 4 > SCRATCH_BYTES)
		return at;
	if (bytes)
		memcpy(at, data, bytes);
	memset(at + bytes, 0, NLMSG_ALIGN(bytes) - bytes);
	message->len += NLMSG_ALIGN(bytes);
	return at;
}

void message_attribute(struct message *message, uint16_t type, const void *data, unsigned int bytes)
{
	struct nlattr header = { .nla_type = type, .nla_len = sizeof(header) + bytes };

	if (message->len + bytes + 8 > SCRATCH_BYTES)
		return;
	message_put(message, &header, sizeof(header));
	message_put(message, data, bytes);
}

unsigned int message_nest(struct message *message, uint16_t type)
{
	unsigned int at = message->len;

	message_attribute(message, type, NULL, 0);
	return at;
}

void message_nest_end(struct message *message, unsigned int at)
{
	((struct nlattr *)(message->bytes + at))->nla_len = message->len - at;
}

/* 1: more answers come; 0 or an error: the end. */
static long answer_in(char *bytes, ssize_t len)
{
	struct nlmsghdr *header = (void *)bytes;

	for (; NLMSG_OK(header, len); header = NLMSG_NEXT(header, len)) {
		if (header->nlmsg_type == NLMSG_ERROR)
			return ((struct nlmsgerr *)NLMSG_DATA(header))->error;
		if (header->nlmsg_type == NLMSG_DONE)
			return 0;
	}
	return 1;
}

/*
 * The kernel answers before sendto(2) returns, and goes on with a list in recv(2). A socket for
 * each message: what an unfinished list holds is freed when it closes.
 */
long message_send(struct message *message, int protocol)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr *header = (void *)message->bytes;
	char answer[16384] __attribute__((aligned(8)));
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	ssize_t len;
	long result;

	if (fd < 0)
		return -errno;
	header->nlmsg_len = message->len;
	if (!(header->nlmsg_flags & NLM_F_DUMP))
		header->nlmsg_flags |= NLM_F_ACK;
	if (one_in(message->worker, 64))
		header->nlmsg_len -= below(message->worker, 32);
	result = made(sendto(fd, message->bytes, message->len, 0, (void *)&kernel, sizeof(kernel)));
	/* A list that is read in part. */
	if (result > 0 && one_in(message->worker, 16)) {
		close(fd);
		return 0;
	}
	while (result > 0) {
		len = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		result = len < 0 ? -errno : answer_in(answer, len);
	}
	close(fd);
	return result;
}

/* Of canwire now: it changes when the module is loaded again. */
int family_id(void)
{
	struct {
		struct nlmsghdr header;
		struct genlmsghdr general;
		struct nlattr name;
		char text[8];
	} question = {
		{ sizeof(question), GENL_ID_CTRL, NLM_F_REQUEST, 0, 0 },
		{ CTRL_CMD_GETFAMILY, 1, 0 },
		{ sizeof(question.name) + sizeof(question.text), CTRL_ATTR_FAMILY_NAME },
		CANWIRE_GENL_NAME,
	};
	char answer[4096] __attribute__((aligned(8)));
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), id = 0;
	struct nlmsghdr *header = (void *)answer;
	struct nlattr *attribute;
	ssize_t len;

	if (fd < 0 || send(fd, &question, sizeof(question), 0) < 0)
		len = -1;
	else
		len = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	if (len < 0 || !NLMSG_OK(header, len) || header->nlmsg_type == NLMSG_ERROR)
		return -ENOENT;
	attribute = NLMSG_DATA(header) + GENL_HDRLEN;
	while ((char *)attribute + sizeof(*attribute) <= answer + len && attribute->nla_len) {
		if (attribute->nla_type == CTRL_ATTR_FAMILY_ID)
			id = *(uint16_t *)(attribute + 1);
		attribute = (void *)attribute + NLA_ALIGN(attribute->nla_len);
	}
	return id;
}
