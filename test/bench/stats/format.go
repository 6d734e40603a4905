package stats

import (
	"fmt"
	"math"
)

// InSeconds formats a time in seconds.
func InSeconds(v float64) string { return fmt.Sprintf("%.2f s", v) }

// Milliseconds formats a time in seconds as milliseconds.
func Milliseconds(v float64) string { return fmt.Sprintf("%.0f ms", 1000*v) }

// Mebibytes formats a number of bytes.
func Mebibytes(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }

// PerSecond formats a rate.
func PerSecond(v float64) string { return fmt.Sprintf("%.2f/s", v) }

// Percent rounds a ratio to the printed precision. Targets are compared with the rounded number, so
// 0.604 is treated as 0.60.
func Percent(ratio float64) float64 { return math.Round(100 * ratio) }

// Outcome returns the word for a target that was met or missed.
func Outcome(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}
