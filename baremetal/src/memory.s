# What the compiler calls by name, and the C library would have.
.section .text, "ax"
.code64
.global memcpy, memmove, memset, memcmp, bcmp
memmove:
	mov %rdi, %rax
	mov %rdi, %rcx
	sub %rsi, %rcx
	cmp %rdx, %rcx			# the end would be overwritten before it is read
	jae memcpy
	lea -1(%rdi, %rdx), %rdi
	lea -1(%rsi, %rdx), %rsi
	mov %rdx, %rcx
	std
	rep movsb
	cld
	ret
memcpy:
	mov %rdi, %rax
	mov %rdx, %rcx
	rep movsb
	ret
memset:
	mov %rdi, %r8
	mov %esi, %eax
	mov %rdx, %rcx
	rep stosb
	mov %r8, %rax
	ret
bcmp:
memcmp:
	mov %rdx, %rcx
	xor %eax, %eax
	cmp %eax, %eax			# equal, where there is nothing to compare
	repe cmpsb
	je 1f
	movzbl -1(%rdi), %eax
	movzbl -1(%rsi), %ecx
	sub %ecx, %eax
1:
	ret
