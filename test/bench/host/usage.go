package host

import (
	"slices"
	"strings"
)

// perPod contains the programs that run once per pod, on both sides. The report does not include
// them in the total.
var perPod = []string{"containerd-shim-runc-v2", "pause"}

// Total returns the sum of a quantity over all processes except pods' processes.
func Total(all []Usage, quantity func(Usage) float64) (sum float64) {
	for _, u := range all {
		if !slices.Contains(perPod, u.Name) {
			sum += quantity(u)
		}
	}
	return sum
}

// Merge adds up the usage of processes with the same name. It sorts the result by name, with pods'
// processes last.
func Merge(all []Usage) []Usage {
	var merged []Usage
	for _, u := range all {
		i := slices.IndexFunc(merged, func(m Usage) bool { return m.Name == u.Name })
		if i < 0 {
			merged = append(merged, u)
			continue
		}
		merged[i].PSS += u.PSS
		merged[i].Anonymous += u.Anonymous
		merged[i].Seconds += u.Seconds
	}
	slices.SortFunc(merged, func(a, b Usage) int {
		if x, y := slices.Contains(perPod, a.Name), slices.Contains(perPod, b.Name); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return merged
}
