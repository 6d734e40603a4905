package security

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
)

// idRange is a range of IDs that is divided into blocks for namespaces.
type idRange struct {
	first, last, block uint64
}

// parseRange parses `<first>-<last>/<block>`, for example 1000000000-1999999999/10000.
func parseRange(text string) (idRange, error) {
	ids, size, ok := strings.Cut(text, "/")
	block, err := strconv.ParseUint(size, 10, 32)
	if !ok || err != nil || block == 0 {
		return idRange{}, fmt.Errorf("range %q is not <first>-<last>/<size of a block>", text)
	}
	full, err := scc.ParseBlock(ids)
	if err != nil || !strings.Contains(ids, "-") {
		return idRange{}, fmt.Errorf("range %q is not <first>-<last>/<size of a block>", text)
	}
	r := idRange{uint64(full.Min), uint64(full.Max), block}
	if r.count() == 0 {
		return idRange{}, fmt.Errorf("range %q is smaller than one block", text)
	}
	return r, nil
}

// String is the inverse of parseRange.
func (r idRange) String() string { return fmt.Sprintf("%d-%d/%d", r.first, r.last, r.block) }

// count returns the number of blocks.
func (r idRange) count() int { return int((r.last - r.first + 1) / r.block) }

// annotation returns the annotation value for the block at index, in the form `<first>/<length>`.
func (r idRange) annotation(index int) string {
	return fmt.Sprintf("%d/%d", r.first+uint64(index)*r.block, r.block)
}

// index returns the index of the block in an annotation, and reports whether the block is in the
// range.
func (r idRange) index(annotation string) (int, bool) {
	block, err := scc.ParseBlock(annotation)
	if err != nil || uint64(block.Min) < r.first || uint64(block.Max) > r.last {
		return 0, false
	}
	offset := uint64(block.Min) - r.first
	return int(offset / r.block), offset%r.block == 0
}

// labels enumerates SELinux levels, which are combinations of categories, in ascending order,
// starting with the pair c1,c0.
type labels struct {
	prefix          string
	categories, top int
}

// parseLabels parses `<prefix>/<categories per label>[,<number of categories>]`, for example s0:/2.
func parseLabels(text string) (labels, error) {
	prefix, rest, ok := strings.Cut(text, "/")
	number, top, limited := strings.Cut(rest, ",")
	l := labels{prefix: strings.TrimSuffix(prefix, ":"), top: 1024}
	var errs [2]error
	l.categories, errs[0] = strconv.Atoi(number)
	if limited {
		l.top, errs[1] = strconv.Atoi(top)
	}
	if !ok || errors.Join(errs[:]...) != nil || l.prefix == "" || l.categories < 1 || l.categories > 5 || l.top < l.categories || l.top > 1024 {
		return labels{}, fmt.Errorf("labels %q are not <prefix>/<1 to 5 categories>[,<at most 1024 categories in all>]", text)
	}
	return l, nil
}

// count returns the number of labels.
func (l labels) count() *big.Int { return new(big.Int).Binomial(int64(l.top), int64(l.categories)) }

// at returns the label with the given number in the combinatorial number system. In each step, the
// category is the largest c for which the binomial coefficient of c and categories does not exceed
// remainder.
func (l labels) at(number int) string {
	remainder := big.NewInt(int64(number))
	var names []string
	for categories, below := l.categories, l.top; categories > 0; categories-- {
		category := below - 1
		for new(big.Int).Binomial(int64(category), int64(categories)).Cmp(remainder) > 0 {
			category--
		}
		remainder.Sub(remainder, new(big.Int).Binomial(int64(category), int64(categories)))
		names = append(names, "c"+strconv.Itoa(category))
		below = category
	}
	return l.prefix + ":" + strings.Join(names, ",")
}
