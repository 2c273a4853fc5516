# Where the second processor starts, in real mode at the image's first byte: %cs:0, and %cs is a sixteenth of it.
.section .text.start, "ax"
.code16
.global start16
start16:
	jmp 1f
	.balign 8
	.ascii "canbare1"		# CANBARE_MAGIC, at byte 8
1:
	cli
	mov %cs, %ax
	mov %ax, %ds
	lgdtl descriptor_table - start16
	mov %cr0, %eax
	or $1, %eax
	mov %eax, %cr0
	ljmpl $24, $1f
.code32
1:
	mov $16, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	xor %ebx, %ebx
	jmp start32
