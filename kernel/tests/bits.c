// SPDX-License-Identifier: GPL-2.0-only
/*
 * canwire/bits.c in user space. Reads frames as lines "id len flags dlc data" (hexadecimal, data
 * without blanks or "-"), writes "nominal data key dlc" for each: bits.py holds them against
 * model.py, and canter's tests against canter-io.
 */
#include <stdio.h>
#include <string.h>

#include "../canwire/bits.h"

int main(void)
{
	struct cw_length length;
	struct canfd_frame frame;
	unsigned int id, len, flags, dlc, byte, i;
	char data[160];

	cw_bits_init();
	while (scanf("%x %x %x %x %150s", &id, &len, &flags, &dlc, data) == 5) {
		memset(&frame, 0, sizeof(frame));
		frame.can_id = id;
		frame.len = len;
		frame.flags = flags;
		frame.__res1 = dlc;
		for (i = 0; i < 64 && sscanf(data + 2 * i, "%2x", &byte) == 1; i++)
			frame.data[i] = byte;
		cw_measure(&frame, &length);
		printf("%u %u %08x %u\n", length.nominal, length.data, cw_arbitration_key(&frame),
		       cw_dlc(&frame));
	}
	return 0;
}
