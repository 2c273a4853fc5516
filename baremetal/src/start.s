# From 32 bits without paging to rust_main: the first GiB of memory is mapped to itself, SSE is on, interrupts are off
# and nothing handles any. %ebx is passed on: where the loader has left what it knows.
.code32
.global start32
start32:
	cli
	cld
	mov %ebx, %edi
	# One table of 2-MiB pages, because not every processor has larger ones.
	movl $tables + 0x1003, tables
	movl $tables + 0x2003, tables + 0x1000
	xor %ecx, %ecx
1:
	mov %ecx, %eax
	shl $21, %eax
	or $0x83, %eax
	mov %eax, tables + 0x2000(, %ecx, 8)
	inc %ecx
	cmp $512, %ecx
	jb 1b
	mov $tables, %eax
	mov %eax, %cr3
	mov %cr4, %eax
	or $0x620, %eax			# PAE, OSFXSR, OSXMMEXCPT
	mov %eax, %cr4
	mov $0xc0000080, %ecx		# EFER
	rdmsr
	or $0x100, %eax			# LME
	wrmsr
	mov %cr0, %eax
	and $0x9ffffffb, %eax		# caches on, no emulation of the FPU
	or $0x80000003, %eax		# paging, protection, MP
	mov %eax, %cr0
	lgdt descriptor_table
	ljmp $8, $start64
.code64
start64:
	mov $16, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $stack_top, %rsp
	mov %edi, %edi			# its upper half was undefined
	call rust_main
1:
	cli
	hlt
	jmp 1b

.balign 8
descriptors:
	.quad 0
	.quad 0x00af9a000000ffff	# code, 64 bits
	.quad 0x00cf92000000ffff	# data
	.quad 0x00cf9a000000ffff	# code, 32 bits
.global descriptor_table
descriptor_table:
	.word 31
	.quad descriptors

.section .bss
.balign 4096
tables:
	.skip 3 * 4096
	.skip 8192
stack_top:
