package quota

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// PluginName is the admission plug-in that enforces quotas over several projects.
const PluginName = "ClusterResourceQuota"

// evaluators is how many namespaces are evaluated at once.
const evaluators = 10

// check is the plug-in. Kubernetes evaluates requests; the ledger is what they are evaluated against.
type check struct {
	*admission.Handler
	feature   *feature
	drained   <-chan struct{}
	evaluator resourcequota.Evaluator
}

var _ admission.ValidationInterface = &check{}

func newCheck(f *feature) *check {
	return &check{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), feature: f}
}

// SetDrainedNotification gives what tells that the server answers nobody any more.
func (c *check) SetDrainedNotification(drained <-chan struct{}) { c.drained = drained }

// SetQuotaConfiguration gives Kubernetes' knowledge of what objects use.
func (c *check) SetQuotaConfiguration(configuration quota.Configuration) {
	c.feature.known.Store(&configuration)
	c.evaluator = resourcequota.NewQuotaEvaluator(later{c.feature}, configuration.IgnoredResources(),
		generic.NewRegistry(append(configuration.Evaluators(), imageStreams())), c.feature.locks.acquire, &resourcequotaapi.Configuration{}, evaluators, c.drained)
}

// ValidateInitialization says whether everything was given.
func (c *check) ValidateInitialization() error {
	if c.drained == nil || c.evaluator == nil {
		return fmt.Errorf("%s was given no configuration of quotas", PluginName)
	}
	return nil
}

// Validate counts what a request uses, and refuses it when a quota of its project would be exceeded.
func (c *check) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetNamespace() == "" || a.GetKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() {
		return nil
	}
	ledger := c.feature.ledger.Load()
	if ledger == nil {
		return nil // nobody but the server itself asks before its hooks have run
	}
	names, err := ledger.names(ctx, a.GetNamespace())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if len(names) == 0 {
		return nil
	}
	c.feature.counter.stale(names) // something may go or end
	if a.GetOperation() == admission.Delete {
		return nil
	}
	return c.evaluator.Evaluate(a)
}

// later is the ledger, which exists once the server's hooks have run.
type later struct{ feature *feature }

var errTooEarly = errors.New("quotas are not known yet")

// GetQuotas gives the quotas of a namespace.
func (l later) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	if ledger := l.feature.ledger.Load(); ledger != nil {
		return ledger.GetQuotas(namespace)
	}
	return nil, errTooEarly
}

// UpdateQuotaStatus stores what is used of a quota.
func (l later) UpdateQuotaStatus(used *corev1.ResourceQuota) error {
	if ledger := l.feature.ledger.Load(); ledger != nil {
		return ledger.UpdateQuotaStatus(used)
	}
	return errTooEarly
}
