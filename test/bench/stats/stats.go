// Package stats computes statistics and formats tables.
package stats

import (
	"math"
	"slices"
	"time"
)

// Median returns the middle value, or the mean of the two middle values. It returns NaN if there
// are no values.
func Median(values []float64) float64 {
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

// Percentile returns the nearest-rank percentile: the smallest value such that at least the given
// percentage of all values do not exceed it. It returns NaN if there are no values.
func Percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (percent*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}

// Seconds converts durations to seconds.
func Seconds(durations []time.Duration) []float64 {
	var values []float64
	for _, d := range durations {
		values = append(values, d.Seconds())
	}
	return values
}
