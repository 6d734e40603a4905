package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

const (
	// checkInterval is how often the counter checks whether quotas must be recounted.
	checkInterval = time.Second
	// recountInterval is the interval between recounts of a quota without observed changes.
	recountInterval = 10 * time.Second
)

// counter counts the resource usage of projects. It counts after requests that can change the
// usage. It also counts periodically, because the usage can change without a request to this
// server, and because a request can fail after its admission.
type counter struct {
	ledger   *ledger
	projects *projectQuotas
	// evaluators returns Kubernetes' quota evaluators. objects lists a resource's objects in a
	// namespace.
	evaluators func() []quota.Evaluator
	objects    func(ctx context.Context, resource schema.GroupResource, namespace string) ([]runtime.Object, error)

	// inFlight holds the reservations that a count must include, whether or not their objects have
	// already been stored.
	inFlight reservations
	settling settling

	mu         sync.Mutex
	changed    map[string]bool
	countTimes map[string]time.Time
}

// stale marks quotas for a recount.
func (c *counter) stale(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = map[string]bool{}
	}
	for _, name := range names {
		c.changed[name] = true
	}
}

// Run counts usage until ctx is done.
func (c *counter) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		quotas, err := c.ledger.all(ctx)
		if err != nil {
			slog.Warn("cannot count the usage of cluster quotas", "error", err)
			return
		}
		for i := range quotas {
			if err := c.check(ctx, &quotas[i], time.Now()); err != nil && ctx.Err() == nil {
				slog.Warn("cannot count the usage of a cluster quota", "quota", quotas[i].Name, "error", err)
			}
		}
		if err := c.countProjects(ctx, time.Now()); err != nil && ctx.Err() == nil {
			slog.Warn("cannot count the projects' image streams", "error", err)
		}
	}, checkInterval)
}

// check recounts a quota if its status might be stale.
func (c *counter) check(ctx context.Context, quota *quotav1.ClusterResourceQuota, now time.Time) error {
	namespaces, err := c.ledger.selected(quota)
	if err != nil {
		return err
	}
	var stale []string
	for _, status := range quota.Status.Namespaces {
		stale = append(stale, status.Namespace)
	}
	slices.Sort(stale)
	same := slices.Equal(namespaces, stale) && equality.Semantic.DeepEqual(quota.Spec.Quota.Hard, quota.Status.Total.Hard)
	if !c.due(quota.Name, same, now) {
		return nil
	}
	err = c.count(ctx, quota.Name, now)
	// Another request has reserved usage since the quota was read, or the quota was deleted.
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		c.stale([]string{quota.Name})
		return nil
	}
	return err
}

// due reports whether a quota must be recounted. If so, it records the time. same means that the
// quota's status matches its spec and its namespaces.
func (c *counter) due(name string, same bool, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if same && !c.changed[name] && now.Sub(c.countTimes[name]) < recountInterval {
		return false
	}
	if c.countTimes == nil {
		c.countTimes = map[string]time.Time{}
	}
	delete(c.changed, name)
	c.countTimes[name] = now
	return true
}

// count counts the usage of a quota's projects and stores it in the quota's status.
func (c *counter) count(ctx context.Context, name string, now time.Time) error {
	item, err := c.ledger.read(ctx, name)
	if err != nil {
		return err
	}
	// Read the reservations before listing the objects. A request that begins later updates the
	// quota before it stores its object, so the write below fails with a conflict. A request that
	// has already finished has stored its objects, so the list contains them.
	reserved := c.inFlight.reserved(name)
	namespaces, err := c.ledger.selected(item)
	if err != nil {
		return err
	}
	status := quotav1.ClusterResourceQuotaStatus{Total: corev1.ResourceQuotaStatus{Hard: item.Spec.Quota.Hard, Used: zero(item.Spec.Quota.Hard)}}
	for _, namespace := range namespaces {
		quantities, err := c.usage(ctx, &item.Spec.Quota, namespace)
		if err != nil {
			return err
		}
		previous := previousUsage(item, namespace)
		quantities, more := c.settling.keep(name, item.ResourceVersion, now, keepReserved(quantities, reserved[namespace], previous), previous)
		if more {
			c.stale([]string{name})
		}
		status.Total.Used = quota.Add(status.Total.Used, quantities)
		status.Namespaces = append(status.Namespaces, quotav1.ResourceQuotaStatusByNamespace{
			Namespace: namespace, Status: corev1.ResourceQuotaStatus{Hard: item.Spec.Quota.Hard, Used: quantities},
		})
	}
	if len(reserved) > 0 {
		c.stale([]string{name}) // a request with a reservation can still fail or be counted twice
	}
	if equality.Semantic.DeepEqual(status, item.Status) {
		return nil
	}
	item.Status = status
	return c.ledger.write(ctx, item)
}

// previousUsage returns a project's stored usage.
func previousUsage(of *quotav1.ClusterResourceQuota, namespace string) corev1.ResourceList {
	for _, project := range of.Status.Namespaces {
		if project.Namespace == namespace {
			return project.Status.Used
		}
	}
	return nil
}

// usage returns a project's usage of the resources that a quota limits.
func (c *counter) usage(ctx context.Context, spec *corev1.ResourceQuotaSpec, namespace string) (corev1.ResourceList, error) {
	limited := quota.ResourceNames(spec.Hard)
	quantities := zero(spec.Hard)
	alone := &corev1.ResourceQuota{Spec: *spec, Status: corev1.ResourceQuotaStatus{Hard: spec.Hard}}
	var errs []error
	for _, evaluator := range withCounts(c.evaluators(), limited) {
		if len(evaluator.MatchingResources(limited)) == 0 {
			continue
		}
		objects, err := c.objects(ctx, evaluator.GroupResource(), namespace)
		errs = append(errs, err)
		for _, object := range objects {
			matches, err := evaluator.Matches(alone, object)
			errs = append(errs, err)
			if !matches {
				continue
			}
			uses, err := evaluator.Usage(object)
			errs = append(errs, err)
			quantities = quota.Add(quantities, quota.Mask(uses, limited))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("count usage of project %q: %w", namespace, err)
	}
	return quantities, nil
}

func zero(hard corev1.ResourceList) corev1.ResourceList {
	none := corev1.ResourceList{}
	for name, limit := range hard {
		none[name] = *apiresource.NewQuantity(0, limit.Format)
	}
	return none
}

// withCounts adds evaluators for the object counts (count/<resource>.<group>) that have no
// evaluator in Kubernetes.
func withCounts(evaluators []quota.Evaluator, limited []corev1.ResourceName) []quota.Evaluator {
	all := append(slices.Clone(evaluators), imageStreams())
	for _, name := range limited {
		text, ok := strings.CutPrefix(string(name), "count/")
		resource := schema.ParseGroupResource(text)
		has := func(e quota.Evaluator) bool { return e.GroupResource() == resource }
		if ok && !slices.ContainsFunc(all, has) {
			all = append(all, generic.NewObjectCountEvaluator(resource, nil, ""))
		}
	}
	return all
}

// imageStreams returns the evaluator for image streams. The evaluator also reports the number of
// image streams under OpenShift 3's resource name.
func imageStreams() quota.Evaluator {
	return generic.NewObjectCountEvaluator(imagev1.Resource("imagestreams"), nil, streamsName)
}
