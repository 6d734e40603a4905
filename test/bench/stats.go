package main

import (
	"math"
	"slices"
	"strings"
	"time"
)

// median is the middle value, or the mean of the two middle ones; NaN without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile is the smallest value that at least percent of all values do not exceed (nearest
// rank); NaN without values.
func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (percent*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}

func seconds(durations []time.Duration) []float64 {
	var values []float64
	for _, d := range durations {
		values = append(values, d.Seconds())
	}
	return values
}

// perPod are the programs that run once a pod, the same ones on both sides. They are listed, and
// not summed up.
var perPod = []string{"containerd-shim-runc-v2", "pause"}

// total sums a quantity of all processes but those of pods.
func total(all []usage, quantity func(usage) float64) (sum float64) {
	for _, u := range all {
		if !slices.Contains(perPod, u.Name) {
			sum += quantity(u)
		}
	}
	return sum
}

// merge sums the processes of the same name and sorts by name, those of pods last.
func merge(all []usage) []usage {
	var merged []usage
	for _, u := range all {
		i := slices.IndexFunc(merged, func(m usage) bool { return m.Name == u.Name })
		if i < 0 {
			merged = append(merged, u)
			continue
		}
		merged[i].PSS += u.PSS
		merged[i].Anonymous += u.Anonymous
		merged[i].Seconds += u.Seconds
	}
	slices.SortFunc(merged, func(a, b usage) int {
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
