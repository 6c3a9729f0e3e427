/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the driver core needs of the place it is compiled in: integer types,
 * errno numbers and memory barriers. In the module these are the kernel's
 * own; elsewhere the compiler's atomics. Nothing else differs between the
 * two, so what unit tests and fuzzers walk is what the module runs.
 *
 * The core allocates nothing, takes no lock, does no I/O and reads no clock:
 * its caller owns memory and locking and passes now_ns.
 */
#ifndef SPANKER_CORE_PORT_H
#define SPANKER_CORE_PORT_H

#ifdef __KERNEL__

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/nospec.h>
#include <linux/types.h>
#include <asm/barrier.h>

#define spk_read_once(x)		READ_ONCE(x)
#define spk_load_acquire(p)		smp_load_acquire(p)
#define spk_store_release(p, v)		smp_store_release(p, v)
#define spk_dma_rmb()			dma_rmb()
#define spk_dma_wmb()			dma_wmb()
#define spk_index_nospec(i, n)		array_index_nospec(i, n)

static inline u64 spk_modulo(u64 value, u64 divisor)
{
	u64 rest;

	div64_u64_rem(value, divisor, &rest);
	return rest;
}

#else /* !__KERNEL__ */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the card's structures are little endian and used in place"
#endif

#if defined(__SANITIZE_THREAD__)
#define SPK_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPK_THREAD_SANITIZER 1
#endif
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define spk_read_once(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define spk_load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define spk_store_release(p, v)		__atomic_store_n(p, v, __ATOMIC_RELEASE)
#ifdef SPK_THREAD_SANITIZER
/* The sanitizer does not model fences; the compiler must still not reorder. */
#define spk_dma_rmb()			__asm__ volatile("" : : : "memory")
#define spk_dma_wmb()			__asm__ volatile("" : : : "memory")
#else
#define spk_dma_rmb()			__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define spk_dma_wmb()			__atomic_thread_fence(__ATOMIC_RELEASE)
#endif
#define spk_index_nospec(i, n)		(i)

static inline u64 spk_modulo(u64 value, u64 divisor)
{
	return value % divisor;
}

#endif /* __KERNEL__ */

#ifdef __cplusplus
#define SPK_C_BEGIN			extern "C" {
#define SPK_C_END			}
#else
#define SPK_C_BEGIN
#define SPK_C_END
#endif

/* An index that names nothing. */
#define SPK_NONE			0xffffffffu

#endif /* SPANKER_CORE_PORT_H */
