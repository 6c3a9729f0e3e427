/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spankerctl_strategy.h - whether a layer is split over the cards or stays
 * whole on one: arithmetic on sizes and bandwidths, with no card and no daemon.
 * Part of spankerctl.h.
 */
#ifndef SPANKERCTL_STRATEGY_H
#define SPANKERCTL_STRATEGY_H

#ifndef SPANKERCTL_H
#error "include <spankerctl.h>, which brings this"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum spanker_weight_format {
	SPANKER_WEIGHTS_PLAIN = 0,     /* n * k * bytes_per_element */
	SPANKER_WEIGHTS_Q4_K = 1,      /* n * (k / 256) * 144 */
	SPANKER_WEIGHTS_MAX_ENUM = 0x7fffffff
} spanker_weight_format;

typedef struct spanker_tile_shape {
	uint64_t m, n, k;              /* Y[m x n] = X[m x k] . W[n x k]^T */
	uint64_t bytes_per_element;    /* of activations, and of plain weights */
	spanker_weight_format weight_format;
} spanker_tile_shape;

typedef enum spanker_strategy {
	SPANKER_TENSOR_PARALLEL = 0,
	SPANKER_MODEL_PARALLEL = 1,
	SPANKER_STRATEGY_MAX_ENUM = 0x7fffffff
} spanker_strategy;

/* Bytes of a tile; a product over 64 bits is UINT64_MAX. */
SPANKER_API uint64_t
spanker_tile_weight_bytes(const spanker_tile_shape *tile);
/* m * n * bytes_per_element */
SPANKER_API uint64_t
spanker_tile_activation_bytes(const spanker_tile_shape *tile);

/*
 * The cheaper of splitting a layer over the cards and keeping it whole on one.
 * 0 or 1 card: tensor parallel. A bandwidth of 0 costs infinitely; ties go to
 * tensor parallel; sizes saturate. Arithmetic: docs/strategy.md.
 */
SPANKER_API spanker_strategy spanker_pick_strategy(
	const spanker_tile_shape *tile, uint64_t n_sails,
	uint64_t local_ddr_bytes_per_s, uint64_t intercard_bytes_per_s);

#ifdef __cplusplus
}
#endif

#endif /* SPANKERCTL_STRATEGY_H */
