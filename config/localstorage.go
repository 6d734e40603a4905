package config

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// localStorage validates slipway.localStorage.
func (c *checker) localStorage(s *LocalStorage) {
	if _, _, err := s.Reserved(); err != nil {
		c.fail("slipway.localStorage.reserve", "%v", err)
	}
	if s.OvercommitPercent < 1 {
		c.fail("slipway.localStorage.overcommitPercent", "is %d, must be at least 1; 100 means no overcommitment", s.OvercommitPercent)
	}
}

// Reserved returns the disk space that volumes must leave free, either in bytes or as a share of
// the disk's size in [0, 1).
func (s *LocalStorage) Reserved() (bytes int64, share float64, err error) {
	return parseReserve(s.Reserve)
}

// parseReserve parses a quantity in bytes, or a percentage, which it returns as a share in [0, 1).
func parseReserve(text string) (bytes int64, share float64, err error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(share >= 0 && share < 100) {
			return 0, 0, fmt.Errorf("is %q, must be at least 0%% and less than 100%%", text)
		}
		return 0, share / 100, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return 0, 0, fmt.Errorf(
			"is %q, must be a quantity such as 10Gi or a percentage of the disk such as 5%%", text)
	}
	return quantity.Value(), 0, nil
}
