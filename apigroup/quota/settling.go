package quota

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// settlingPeriod is the maximum time from a reservation, by any API server, until the reservation's
// object is stored or its request fails.
const settlingPeriod = 5 * time.Second

// settling prevents a count from lowering a quota's usage while another API server might have
// reserved usage for objects that have not been stored yet. Each reservation changes the quota's
// resource version, so a version that has not changed for settlingPeriod shows that no reservation
// is pending.
type settling struct {
	// period is settlingPeriod, or 0 if there is no other API server.
	period time.Duration

	mu       sync.Mutex
	versions map[string]version
}

// version is a resource version and the time at which this server first observed it.
type version struct {
	resource string
	since    time.Time
}

// keep returns the usage that a count stores: the counted usage or, if the quota has changed within
// the period, at least the previous usage. more reports whether the count must be repeated.
func (s *settling) keep(name, resourceVersion string, now time.Time, counted, previous corev1.ResourceList) (usage corev1.ResourceList, more bool) {
	if s.settled(name, resourceVersion, now) {
		return counted, false
	}
	usage = quota.Mask(quota.Max(counted, previous), quota.ResourceNames(counted))
	return usage, !quota.Equals(usage, counted)
}

// settled reports whether a quota's resource version has remained the same for the period.
func (s *settling) settled(name, resourceVersion string, now time.Time) bool {
	if s.period == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil {
		s.versions = map[string]version{}
	}
	if current, exists := s.versions[name]; exists && current.resource == resourceVersion {
		return now.Sub(current.since) >= s.period
	}
	s.versions[name] = version{resourceVersion, now}
	return false
}
