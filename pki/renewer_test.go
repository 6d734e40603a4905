package pki

import (
	"testing"
	"time"
)

func TestCertificatesAreCheckedInTime(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{365 * 24 * time.Hour: time.Hour, time.Hour: 10 * time.Second} {
		if got := RenewalInterval(lifetime); got != want {
			t.Errorf("lifetime %s: got %s, want %s", lifetime, got, want)
		}
	}
}
