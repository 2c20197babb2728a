#include "captions/tag_rank.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "captions/tag_rank_simd.hpp"
#include "common/gram_tile.hpp"
#include "common/groups.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"

namespace kernelcore {
namespace {

// Values of the widest vector: the last vector of a row may reach beyond it.
constexpr std::size_t kPadding = 16;

// Work for each pair of captions, each tag that is looked up, and each one that is indexed.
constexpr std::size_t kWorkPerPair = 2;
constexpr std::size_t kWorkPerTag = 20;
constexpr std::size_t kWorkPerIndexedTag = 3;

// The captions that have each tag, ascending.
Groups<std::uint32_t> captions_by_tag(const CaptionsView& captions, std::size_t n_tags,
                                      Worker& worker) {
  check_fits<std::uint32_t>(captions.words.n_rows, "captions");
  return grouped<std::uint32_t>(n_tags, [&](const auto& add) {
    for (std::size_t c = 0; c < captions.words.n_rows; ++c) {
      worker.spend(kWorkPerIndexedTag * captions.words.size(c));
      for (auto tag = captions.words.begin(c); tag != captions.words.end(c); ++tag) {
        add(*tag, static_cast<std::uint32_t>(c));
      }
    }
  });
}

// Ranks of one kind, divided by twice their width: a distance is the exponent itself.
class Kind {
 public:
  Kind(const double* ranks, double width) : ranks_(ranks), scale_(0.5 / width) {}

  // The term of a word in the sum of its caption.
  float own(std::size_t tag) const { return static_cast<float>(ranks_[tag] * scale_); }

  // The term that two tags of one word take off; of equal tags exactly the two terms they
  // added.
  float shared(std::size_t tag, std::size_t other) const {
    if (tag == other) return 2 * own(tag);
    const double sum = ranks_[tag] + ranks_[other];
    return sum > 0 ? static_cast<float>(4 * ranks_[tag] * ranks_[other] / sum * scale_) : 0.0f;
  }

  std::vector<float> sums(const RaggedView<std::int32_t>& captions, Worker& worker) const {
    std::vector<float> sums(captions.n_rows + kPadding, 0.0f);
    for (std::size_t c = 0; c < captions.n_rows; ++c) {
      worker.spend(captions.size(c));
      for (const std::int32_t* tag = captions.begin(c); tag != captions.end(c); ++tag) {
        sums[c] += own(*tag);
      }
    }
    return sums;
  }

 private:
  const double* ranks_;
  const double scale_;
};

struct Workspace {
  std::vector<float> shared_absolute, shared_relative, values;
  std::vector<double> sums;
};

}  // namespace

template <class Out>
void tag_rank(const CaptionsView& X, const CaptionsView& Y, const TagRanks& ranks,
              MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  const bool symmetric = X.is(Y);
  KC_ASSERT(X.is_valid(ranks.n_tags) && Y.is_valid(ranks.n_tags) && ranks.is_valid());
  KC_ASSERT(K.n_rows == X.n_images && K.n_cols == Y.n_images);
  const TagRankKernels kernels = KERNELCORE_DISPATCH(tag_rank_kernels);
  Crew crew(n_threads, monitor);
  Worker& caller = crew.caller();
  const Kind absolute(ranks.absolute, ranks.absolute_width);
  const Kind relative(ranks.relative, ranks.relative_width);
  const std::vector<float> absolute_X = absolute.sums(X.words, caller);
  const std::vector<float> relative_X = relative.sums(X.words, caller);
  const std::vector<float> absolute_Y = absolute.sums(Y.words, caller);
  const std::vector<float> relative_Y = relative.sums(Y.words, caller);
  const Groups<std::uint32_t> index = captions_by_tag(Y, ranks.n_tags, caller);
  // Tags of a word stand together: those of word w begin at first_tag[w].
  std::vector<std::size_t> first_tag(ranks.n_words + 1, 0);
  for (std::size_t tag = 0; tag < ranks.n_tags; ++tag) ++first_tag[ranks.words[tag] + 1];
  std::partial_sum(first_tag.begin(), first_tag.end(), first_tag.begin());

  std::vector<Workspace> workspaces(n_threads);
  const auto work_of_row = [&](std::size_t row) {
    const std::size_t first = X.first_caption(row), last = X.first_caption(row + 1);
    return static_cast<double>(kWorkPerPair * (last - first) + X.n_words(row));
  };
  const auto n_captions = [&](std::size_t col) {
    return static_cast<double>(Y.first_caption(col + 1) - Y.first_caption(col));
  };
  const std::vector<TileRange> tiles =
      cut_tiles(X.n_images, Y.n_images, symmetric, 1, work_of_row, n_captions);
  crew.parallel_for(tiles.size(), [&](std::size_t task, Worker& worker) {
    const TileRange& tile = tiles[task];
    const std::size_t first_col = Y.first_caption(tile.col_begin);
    const std::size_t last_col = Y.first_caption(tile.col_end);
    const std::size_t n_cols = last_col - first_col;
    Workspace& w = workspaces[worker.index()];
    w.shared_absolute.assign(n_cols + kPadding, 0.0f);
    w.shared_relative.assign(n_cols + kPadding, 0.0f);
    w.sums.assign(tile.n_rows() * tile.n_cols(), 0.0);
    double* sum = w.sums.data();
    for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
      w.values.assign(n_cols + kPadding, 0.0f);
      for (std::size_t s = X.first_caption(row); s < X.first_caption(row + 1); ++s) {
        for (const std::int32_t* tag = X.words.begin(s); tag != X.words.end(s); ++tag) {
          const std::size_t word = ranks.words[*tag];
          for (std::size_t other = first_tag[word]; other < first_tag[word + 1]; ++other) {
            const float a = absolute.shared(*tag, other);
            const float r = relative.shared(*tag, other);
            const std::uint32_t* last = index.end(other);
            const std::uint32_t* place = index.begin(other);
            if (first_col > 0) place = std::lower_bound(place, last, first_col);
            if (last_col < Y.words.n_rows) last = std::lower_bound(place, last, last_col);
            worker.spend(kWorkPerTag + static_cast<std::size_t>(last - place));
            for (; place != last; ++place) {
              w.shared_absolute[*place - first_col] += a;
              w.shared_relative[*place - first_col] += r;
            }
          }
        }
        kernels.add({absolute_X[s], absolute_Y.data() + first_col, w.shared_absolute.data()},
                    {relative_X[s], relative_Y.data() + first_col, w.shared_relative.data()},
                    n_cols, w.values.data());
        worker.spend(kWorkPerPair * n_cols);
      }
      const double n_row = static_cast<double>(X.first_caption(row + 1) - X.first_caption(row));
      for (std::size_t col = tile.col_begin; col < tile.col_end; ++col, ++sum) {
        const std::size_t begin = Y.first_caption(col), end = Y.first_caption(col + 1);
        for (std::size_t t = begin; t < end; ++t) *sum += w.values[t - first_col];
        if (n_row > 0 && end > begin) *sum /= 2 * n_row * static_cast<double>(end - begin);
      }
    }
    write_tile(w.sums.data(), 1, tile, symmetric, K, worker);
  });
}

template void tag_rank<float>(const CaptionsView&, const CaptionsView&, const TagRanks&,
                              MatrixView<float>, std::size_t, Monitor&);
template void tag_rank<double>(const CaptionsView&, const CaptionsView&, const TagRanks&,
                               MatrixView<double>, std::size_t, Monitor&);

}  // namespace kernelcore
