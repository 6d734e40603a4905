package quota

import (
	"context"
	"errors"
	"fmt"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// PluginName is the admission plugin that enforces quotas over several projects.
const PluginName = "ClusterResourceQuota"

// evaluators is how many namespaces are evaluated at once.
const evaluators = 10

// ownEvaluators is that for image streams in projects.
const ownEvaluators = 2

// check is the plugin. Kubernetes evaluates requests; the ledger is what they are evaluated against.
type check struct {
	*admission.Handler
	feature *feature
	drained <-chan struct{}
	// evaluator is for quotas over projects, own for image streams in the quotas of one project.
	evaluator, own resourcequota.Evaluator
	// registry and ignored tell what uses something.
	registry quota.Registry
	ignored  map[schema.GroupResource]struct{}
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
	c.registry, c.ignored = generic.NewRegistry(append(configuration.Evaluators(), imageStreams())), configuration.IgnoredResources()
	c.evaluator = resourcequota.NewQuotaEvaluator(later{c.feature}, c.ignored,
		c.registry, c.feature.locks.acquire, &resourcequotaapi.Configuration{}, evaluators, c.drained)
	c.own = resourcequota.NewQuotaEvaluator(laterProjects{c.feature}, c.ignored,
		generic.NewRegistry([]quota.Evaluator{imageStreams()}), nil, &resourcequotaapi.Configuration{}, ownEvaluators, c.drained)
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
	projects, err := c.feature.counter.projects.limiting(a.GetNamespace())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	for _, one := range projects {
		names = append(names, flight(one))
	}
	if len(names) == 0 {
		return nil
	}
	c.feature.counter.stale(names) // something may go or end
	if a.GetOperation() == admission.Delete {
		return nil
	}
	handled, uses, err := c.handled(ctx, ledger, a)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	end := func() {}
	if len(handled) > 0 && !a.IsDryRun() {
		end = c.feature.counter.flights.begin(ctx, &reservation{quotas: names, namespace: a.GetNamespace(), uses: uses})
	}
	if err := c.evaluate(handled, len(projects) > 0); err != nil {
		end()
		return err
	}
	return nil
}

// handled are the parts of a request that use something that quotas know, and what they use at most: the request itself, and the creation of the image
// stream that it makes on the way. An update of a status, for example, is none.
func (c *check) handled(ctx context.Context, ledger *ledger, a admission.Attributes) (parts []admission.Attributes, uses corev1.ResourceList, err error) {
	all := []admission.Attributes{a}
	stream, err := ledger.madeStream(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	if stream != "" {
		all = append(all, creation(a, stream))
	}
	for _, part := range all {
		resource := part.GetResource().GroupResource()
		if _, ignored := c.ignored[resource]; ignored {
			continue
		}
		evaluator := c.registry.Get(resource)
		if evaluator == nil { // Kubernetes counts objects that it knows nothing else of
			evaluator = generic.NewObjectCountEvaluator(resource, nil, "")
		}
		if !evaluator.Handles(part) {
			continue
		}
		more, err := evaluator.Usage(part.GetObject())
		if err != nil {
			return nil, nil, err
		}
		parts, uses = append(parts, part), quota.Add(uses, more)
	}
	return parts, uses, nil
}

// evaluate reserves what the parts of a request will use, image streams in the quotas of their project too where these limit them.
func (c *check) evaluate(parts []admission.Attributes, limited bool) error {
	for _, part := range parts {
		if err := c.evaluator.Evaluate(part); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if !limited || part.GetResource().GroupResource() != imagev1.Resource("imagestreams") {
			continue
		}
		if err := c.own.Evaluate(part); err != nil {
			return err
		}
	}
	return nil
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

// laterProjects is later for the quotas of one project.
type laterProjects struct{ feature *feature }

// GetQuotas gives the quotas of a namespace.
func (l laterProjects) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	if l.feature.ledger.Load() != nil {
		return l.feature.counter.projects.GetQuotas(namespace)
	}
	return nil, errTooEarly
}

// UpdateQuotaStatus writes what is used.
func (l laterProjects) UpdateQuotaStatus(used *corev1.ResourceQuota) error {
	if l.feature.ledger.Load() != nil {
		return l.feature.counter.projects.UpdateQuotaStatus(used)
	}
	return errTooEarly
}
