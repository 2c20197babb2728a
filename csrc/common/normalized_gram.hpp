// The driver of Gram matrices of images that are computed tile by tile, and divided by
// sqrt(K(x, x) K(y, y)) on request.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "common/ragged_view.hpp"

namespace kernelcore {

class NormalizedGram {
 public:
  // A task finds the self-similarities of images_per_task images, or computes one tile. Each
  // tile has n_parts sums for an element, one if the matrix is normalised.
  NormalizedGram(const CaptionsView& X, const CaptionsView& Y, std::vector<TileRange> tiles,
                 std::size_t n_parts, bool normalize, std::size_t images_per_task, Crew& crew)
      : X_(X),
        Y_(Y),
        symmetric_(X.is(Y)),
        tiles_(std::move(tiles)),
        n_parts_(n_parts),
        normalize_(normalize),
        images_per_task_(images_per_task),
        crew_(crew) {
    KC_ASSERT(!normalize || n_parts == 1);
    std::size_t n_tasks = tiles_.size();
    if (normalize) n_tasks += n_self_tasks(X) + (symmetric_ ? 0 : n_self_tasks(Y));
    crew.expect(n_tasks);
  }

  // Calls find(captions, first, last, self, worker), which sets self[i] for the images
  // first <= i < last of X or Y. Calls nothing if the matrix is not normalised.
  template <class Find>
  void find_self_similarities(const Find& find) {
    if (!normalize_) return;
    self_X_ = self_similarities(X_, find);
    if (!symmetric_) self_Y_ = self_similarities(Y_, find);
  }

  // Calls compute(tile, worker), which returns the sums [row][column][part] of a tile, and
  // writes K.
  template <class Out, class Compute>
  void write(MatrixView<Out> K, const Compute& compute) {
    KC_ASSERT(K.n_rows == X_.n_images && K.n_cols == Y_.n_images * n_parts_);
    crew_.parallel_for(tiles_.size(), [&](std::size_t task, Worker& worker) {
      const TileRange& tile = tiles_[task];
      double* const sums = compute(tile, worker);
      if (normalize_) normalize(sums, tile);
      write_tile(sums, n_parts_, tile, symmetric_, K, worker);
    });
  }

 private:
  std::size_t n_self_tasks(const CaptionsView& captions) const {
    return (captions.n_images + images_per_task_ - 1) / images_per_task_;
  }

  template <class Find>
  std::vector<double> self_similarities(const CaptionsView& captions, const Find& find) {
    std::vector<double> self(captions.n_images);
    crew_.parallel_for(n_self_tasks(captions), [&](std::size_t task, Worker& worker) {
      const std::size_t first = task * images_per_task_;
      const std::size_t last = std::min(first + images_per_task_, captions.n_images);
      find(captions, first, last, self.data(), worker);
    });
    check_finite(self);
    return self;
  }

  void normalize(double* sums, const TileRange& tile) const {
    // A tile may add in another order than self-similarities do: equal images get exactly 1.
    for (std::size_t i = tile.row_begin; symmetric_ && i < tile.row_end; ++i) {
      if (i >= tile.col_begin && i < tile.col_end) {
        sums[(i - tile.row_begin) * tile.n_cols() + i - tile.col_begin] = self_X_[i];
      }
    }
    normalize_tile(sums, tile, {self_X_.data(), (symmetric_ ? self_X_ : self_Y_).data()});
  }

  const CaptionsView X_, Y_;
  const bool symmetric_;
  const std::vector<TileRange> tiles_;
  const std::size_t n_parts_;
  const bool normalize_;
  const std::size_t images_per_task_;
  Crew& crew_;
  std::vector<double> self_X_, self_Y_;
};

}  // namespace kernelcore
