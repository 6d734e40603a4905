package quota

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	imagev1 "github.com/openshift/api/image/v1"
	securityv1 "github.com/openshift/api/security/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// PluginName is the name of the admission plugin that enforces cluster quotas.
const PluginName = "ClusterResourceQuota"

// evaluators is the number of namespaces whose cluster quotas are evaluated concurrently.
const evaluators = 10

// ownEvaluators is the number of namespaces whose ResourceQuotas are evaluated concurrently for
// image streams.
const ownEvaluators = 2

// quotaPlugin is the admission plugin that enforces cluster quotas. Kubernetes' evaluator
// calculates the usage, and reads the quotas from the ledger.
type quotaPlugin struct {
	*admission.Handler
	feature *feature
	drained <-chan struct{}
	// evaluator evaluates cluster quotas. local evaluates the limits on image streams in a
	// project's ResourceQuotas.
	evaluator, local resourcequota.Evaluator
	// registry contains Kubernetes' evaluators and the evaluator for image streams. ignored lists
	// the resources that quotas ignore.
	registry quota.Registry
	ignored  map[schema.GroupResource]struct{}
}

var _ admission.ValidationInterface = &quotaPlugin{}

func newPlugin(f *feature) *quotaPlugin {
	return &quotaPlugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), feature: f}
}

// SetDrainedNotification stores the channel that is closed when the server has stopped serving
// requests.
func (c *quotaPlugin) SetDrainedNotification(drained <-chan struct{}) { c.drained = drained }

// SetQuotaConfiguration stores Kubernetes' evaluators.
func (c *quotaPlugin) SetQuotaConfiguration(configuration quota.Configuration) {
	c.feature.configuration.Store(&configuration)
	c.registry, c.ignored = generic.NewRegistry(append(configuration.Evaluators(), imageStreams())), configuration.IgnoredResources()
	c.evaluator = resourcequota.NewQuotaEvaluator(lateLedger{c.feature}, c.ignored,
		c.registry, c.feature.locks.acquire, &resourcequotaapi.Configuration{}, evaluators, c.drained)
	c.local = resourcequota.NewQuotaEvaluator(lateProjects{c.feature}, c.ignored,
		generic.NewRegistry([]quota.Evaluator{imageStreams()}), nil, &resourcequotaapi.Configuration{}, ownEvaluators, c.drained)
}

// ValidateInitialization returns an error if there is no quota configuration.
func (c *quotaPlugin) ValidateInitialization() error {
	if c.drained == nil || c.evaluator == nil {
		return fmt.Errorf("initialize %s: no quota configuration", PluginName)
	}
	return nil
}

// isReview reports whether a resource is an access review or a pod review. Quotas ignore reviews,
// because reviews are not stored, and users can send them for namespaces that do not exist.
func isReview(resource schema.GroupResource) bool {
	switch resource.Group {
	case authorizationv1.GroupName, kubeauthorizationv1.GroupName, securityv1.GroupName:
		return strings.HasSuffix(resource.Resource, "reviews")
	}
	return false
}

// Validate reserves a request's usage. It rejects the request if the usage would exceed a quota.
func (c *quotaPlugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetNamespace() == "" || a.GetKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() ||
		isReview(a.GetResource().GroupResource()) {
		return nil
	}
	ledger := c.feature.ledger.Load()
	if ledger == nil {
		return nil // only the server itself sends requests before its hooks have run
	}
	names, err := ledger.names(ctx, a.GetNamespace())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	projects, err := c.feature.counter.projects.limiting(a.GetNamespace())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	for _, quota := range projects {
		names = append(names, keyOf(quota))
	}
	if len(names) == 0 {
		return nil
	}
	c.feature.counter.stale(names) // the request can reduce the usage
	if a.GetOperation() == admission.Delete {
		return nil
	}
	handled, uses, err := c.handled(ctx, ledger, a)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	release := func() {}
	if len(handled) > 0 && !a.IsDryRun() {
		release = c.feature.counter.inFlight.begin(ctx, &reservation{quotas: names, namespace: a.GetNamespace(), uses: uses})
	}
	if err := c.evaluate(handled, len(projects) > 0); err != nil {
		release()
		return err
	}
	return nil
}

// handled returns the parts of a request that quotas count, with their maximum usage. The parts are
// the request itself, and the creation of an image stream that the request causes. A status update,
// for example, has no countable parts.
func (c *quotaPlugin) handled(ctx context.Context, ledger *ledger, a admission.Attributes) (parts []admission.Attributes, uses corev1.ResourceList, err error) {
	all := []admission.Attributes{a}
	stream, err := ledger.createdStream(ctx, a)
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
		if evaluator == nil { // quotas can count the objects of any resource
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

// evaluate reserves the usage of a request's parts. If the project's ResourceQuotas limit image
// streams, it also evaluates those quotas.
func (c *quotaPlugin) evaluate(parts []admission.Attributes, limited bool) error {
	for _, part := range parts {
		if err := c.evaluator.Evaluate(part); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if !limited || part.GetResource().GroupResource() != imagev1.Resource("imagestreams") {
			continue
		}
		if err := c.local.Evaluate(part); err != nil {
			return err
		}
	}
	return nil
}

// lateLedger delegates to the ledger, which does not exist until the server's hooks have run.
type lateLedger struct{ feature *feature }

var errNotReady = errors.New("quotas are not ready; try again")

// GetQuotas returns the quotas of a namespace.
func (l lateLedger) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	if ledger := l.feature.ledger.Load(); ledger != nil {
		return ledger.GetQuotas(namespace)
	}
	return nil, errNotReady
}

// UpdateQuotaStatus stores the usage of a quota.
func (l lateLedger) UpdateQuotaStatus(quota *corev1.ResourceQuota) error {
	if ledger := l.feature.ledger.Load(); ledger != nil {
		return ledger.UpdateQuotaStatus(quota)
	}
	return errNotReady
}

// lateProjects delegates to the accessor for the ResourceQuotas of projects, which does not exist
// until the server's hooks have run.
type lateProjects struct{ feature *feature }

// GetQuotas returns the quotas of a namespace.
func (l lateProjects) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	if l.feature.ledger.Load() != nil {
		return l.feature.counter.projects.GetQuotas(namespace)
	}
	return nil, errNotReady
}

// UpdateQuotaStatus stores the usage of a quota.
func (l lateProjects) UpdateQuotaStatus(quota *corev1.ResourceQuota) error {
	if l.feature.ledger.Load() != nil {
		return l.feature.counter.projects.UpdateQuotaStatus(quota)
	}
	return errNotReady
}
