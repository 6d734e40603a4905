package scheduler

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// extenders converts a Policy's extenders.
func extenders(extenders []policy.Extender) []configv1.Extender {
	converted := make([]configv1.Extender, 0, len(extenders))
	for _, e := range extenders {
		extender := configv1.Extender{
			URLPrefix:        e.URLPrefix,
			FilterVerb:       e.FilterVerb,
			PreemptVerb:      e.PreemptVerb,
			PrioritizeVerb:   e.PrioritizeVerb,
			BindVerb:         e.BindVerb,
			Weight:           e.Weight,
			EnableHTTPS:      e.EnableHTTPS,
			HTTPTimeout:      metav1.Duration{Duration: time.Duration(e.HTTPTimeout)},
			NodeCacheCapable: e.NodeCacheCapable,
			Ignorable:        e.Ignorable,
		}
		if tls := e.TLSConfig; tls != nil {
			extender.TLSConfig = &configv1.ExtenderTLSConfig{
				Insecure: tls.Insecure, ServerName: tls.ServerName,
				CertFile: tls.CertFile, KeyFile: tls.KeyFile, CAFile: tls.CAFile,
			}
		}
		for _, resource := range e.ManagedResources {
			extender.ManagedResources = append(extender.ManagedResources, configv1.ExtenderManagedResource{
				Name: resource.Name, IgnoredByScheduler: resource.IgnoredByScheduler,
			})
		}
		converted = append(converted, extender)
	}
	return converted
}
