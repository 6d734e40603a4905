package stats

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedianAndPercentile(t *testing.T) {
	tests := []struct {
		name           string
		values         []float64
		median, ninety float64
	}{
		{"one value is the median and the percentile", []float64{4}, 4, 4},
		{"for an even number, the median is the mean of the two middle values", []float64{8, 2, 4, 6}, 5, 8},
		{"one outlier among ten values changes neither", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1000}, 5.5, 9},
		{"the order does not matter", []float64{3, 1, 2}, 2, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			values := append([]float64(nil), test.values...)
			if got := Median(test.values); got != test.median {
				t.Errorf("median is %v, want %v", got, test.median)
			}
			if got := Percentile(test.values, 90); got != test.ninety {
				t.Errorf("90th percentile is %v, want %v", got, test.ninety)
			}
			if diff := cmp.Diff(values, test.values); diff != "" {
				t.Errorf("the values were changed:\n%s", diff)
			}
		})
	}
}

func TestMedianOfNoValuesIsNaN(t *testing.T) {
	if got := []float64{Median(nil), Percentile(nil, 90)}; !math.IsNaN(got[0]) || !math.IsNaN(got[1]) {
		t.Errorf("got %v, want not a number", got)
	}
}

func TestSecondsKeepFractions(t *testing.T) {
	if diff := cmp.Diff([]float64{1.5, 0.25}, Seconds([]time.Duration{1500 * time.Millisecond, 250 * time.Millisecond})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
