package login

import (
	"fmt"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics counts attempts to log in with a password. The metrics have the same names as in
// OpenShift 3 (3.9 Architecture, 4.1.4.7). The methods of a nil Metrics are no-ops.
type Metrics struct {
	total, basicTotal, formTotal *metrics.Counter
	basicResult, formResult      *metrics.CounterVec
}

// NewMetrics registers the counters. Call it once per process.
func NewMetrics() (*Metrics, error) {
	counter := func(name, help string) *metrics.Counter {
		return metrics.NewCounter(&metrics.CounterOpts{Name: name, Help: help})
	}
	byResult := func(name, help string) *metrics.CounterVec {
		return metrics.NewCounterVec(&metrics.CounterOpts{Name: name, Help: help}, []string{"result"})
	}
	m := &Metrics{
		total:       counter("openshift_auth_password_total", "Login attempts by password."),
		basicTotal:  counter("openshift_auth_basic_password_count", "Login attempts by password in response to a challenge, such as those of oc login."),
		formTotal:   counter("openshift_auth_form_password_count", "Login attempts by password on a page."),
		basicResult: byResult("openshift_auth_basic_password_count_result", "Login attempts by password in response to a challenge, by result: success or error."),
		formResult:  byResult("openshift_auth_form_password_count_result", "Login attempts by password on a page, by result: success or error."),
	}
	for _, metric := range []metrics.Registerable{m.total, m.basicTotal, m.formTotal, m.basicResult, m.formResult} {
		if err := legacyregistry.Register(metric); err != nil {
			return nil, fmt.Errorf("register login metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) basic(success bool) {
	if m != nil {
		count(m.total, m.basicTotal, m.basicResult, success)
	}
}

func (m *Metrics) form(success bool) {
	if m != nil {
		count(m.total, m.formTotal, m.formResult, success)
	}
}

func count(total, kind *metrics.Counter, result *metrics.CounterVec, success bool) {
	total.Inc()
	kind.Inc()
	if success {
		result.WithLabelValues("success").Inc()
		return
	}
	result.WithLabelValues("error").Inc()
}
