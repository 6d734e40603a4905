// Package descheduler evicts pods that fit better on other nodes, according to OpenShift 3.11 or
// Kubernetes descheduler policies. It runs the sigs.k8s.io/descheduler plugins with the permissions
// that the OpenShift guide grants: to read nodes and pods, and to evict pods.
package descheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/descheduler/pkg/api"
	"sigs.k8s.io/descheduler/pkg/descheduler/evictions"
	nodeutil "sigs.k8s.io/descheduler/pkg/descheduler/node"
	podutil "sigs.k8s.io/descheduler/pkg/descheduler/pod"
	"sigs.k8s.io/descheduler/pkg/features"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/defaultevictor"
	"sigs.k8s.io/descheduler/pkg/framework/profile"
	frameworktypes "sigs.k8s.io/descheduler/pkg/framework/types"
)

// ErrFewNodes means that the cluster has fewer than two ready nodes, so no pod can be moved.
var ErrFewNodes = errors.New("the cluster has fewer than two ready nodes")

// Descheduler evicts pods as a policy specifies.
type Descheduler struct {
	Client kubernetes.Interface
	Policy *api.DeschedulerPolicy
	// DryRun makes the API server validate evictions without executing them. PodDisruptionBudgets
	// are respected, but each eviction is evaluated separately.
	DryRun bool
	// Report is called for each pod that the policy selects.
	Report func(Eviction)
}

// Eviction is the result of an eviction attempt for a pod.
type Eviction struct {
	// Pod is the pod as it was before its eviction.
	Pod *corev1.Pod
	// Strategy is the name of the strategy that evicted the pod. It is empty after a failure.
	Strategy string
	// Failure explains why the pod was not evicted, for example because of a PodDisruptionBudget.
	Failure string
}

// String returns a one-line description for users.
func (e Eviction) String() string {
	if e.Failure != "" {
		return fmt.Sprintf("pod %s/%s stays on node %s: %s", e.Pod.Namespace, e.Pod.Name, e.Pod.Spec.NodeName, e.Failure)
	}
	return fmt.Sprintf("pod %s/%s on node %s: evicted by %s", e.Pod.Namespace, e.Pod.Name, e.Pod.Spec.NodeName, e.Strategy)
}

// Deschedule reads the nodes and pods in the cluster and runs each strategy in the policy once. It
// keeps no state between calls.
func (d *Descheduler) Deschedule(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	// The upstream plugins log each step. Discard these logs, because Report receives the results.
	ctx = klog.NewContext(ctx, klog.Logger{})
	factory := informers.NewSharedInformerFactoryWithOptions(d.Client, 0, informers.WithTransform(removeManagedFields))
	defer func() {
		cancel(nil)
		factory.Shutdown()
	}()
	pass, err := d.prepare(ctx, factory)
	if err != nil {
		return err
	}
	if err := start(ctx, cancel, factory, pass.informers); err != nil {
		return err
	}
	nodes, err := pass.readyNodes()
	if err != nil {
		return err
	}
	return pass.run(ctx, nodes)
}

// pass is one run of the policy.
type pass struct {
	factory   informers.SharedInformerFactory
	informers []cache.SharedIndexInformer
	selector  labels.Selector
	profiles  []runner
}

// runner is the subset of the upstream profile's methods that run the plugins.
type runner interface {
	RunDeschedulePlugins(ctx context.Context, nodes []*corev1.Node) *frameworktypes.Status
	RunBalancePlugins(ctx context.Context, nodes []*corev1.Node) *frameworktypes.Status
}

// prepare creates the policy's plugins.
func (d *Descheduler) prepare(ctx context.Context, factory informers.SharedInformerFactory) (*pass, error) {
	pods := factory.Core().V1().Pods().Informer()
	p := &pass{factory: factory, selector: labels.Everything(), informers: []cache.SharedIndexInformer{pods, factory.Core().V1().Nodes().Informer()}}
	if text := d.Policy.NodeSelector; text != nil {
		selector, err := labels.Parse(*text)
		if err != nil {
			return nil, fmt.Errorf("parse nodeSelector of descheduler policy: %w", err)
		}
		p.selector = selector
	}
	podsOf, err := podutil.BuildGetPodsAssignedToNodeFunc(pods)
	if err != nil {
		return nil, fmt.Errorf("index pods by node: %w", err)
	}
	client := d.Client
	if d.DryRun {
		client = dryRun{client}
	}
	evictor, err := evictions.NewPodEvictor(ctx, client, reporter{d.Report}, pods, features.DefaultMutableFeatureGate, evictions.NewOptions().
		WithPolicyGroupVersion(policyv1.SchemeGroupVersion.String()).
		WithMaxPodsToEvictPerNode(d.Policy.MaxNoOfPodsToEvictPerNode).
		WithMaxPodsToEvictPerNamespace(d.Policy.MaxNoOfPodsToEvictPerNamespace).
		WithMaxPodsToEvictTotal(d.Policy.MaxNoOfPodsToEvictTotal).
		WithEvictionFailureEventNotification(d.Policy.EvictionFailureEventNotification).
		WithGracePeriodSeconds(d.Policy.GracePeriodSeconds))
	if err != nil {
		return nil, fmt.Errorf("create evictor: %w", err)
	}
	registry := newRegistry()
	for i, settings := range d.Policy.Profiles {
		p.informers = append(p.informers, informersOf(factory, settings)...)
		created, err := profile.NewProfile(ctx, settings, registry, profile.WithClientSet(client),
			profile.WithSharedInformerFactory(factory), profile.WithPodEvictor(evictor),
			profile.WithGetPodsAssignedToNodeFnc(podsOf), profile.WithProfileInstanceID(fmt.Sprint(i)))
		if err != nil {
			return nil, fmt.Errorf("create profile %q of descheduler policy: %w", settings.Name, err)
		}
		p.profiles = append(p.profiles, created)
	}
	return p, nil
}

// informersOf returns the additional informers that a profile's filters read.
func informersOf(factory informers.SharedInformerFactory, settings api.DeschedulerProfile) (list []cache.SharedIndexInformer) {
	for _, config := range settings.PluginConfigs {
		args, ok := config.Args.(*defaultevictor.DefaultEvictorArgs)
		if !ok {
			continue
		}
		if args.NamespaceLabelSelector != nil {
			list = append(list, factory.Core().V1().Namespaces().Informer())
		}
		if args.IgnorePodsWithoutPDB || len(args.PodProtections.ExtraEnabled) > 0 {
			list = append(list, factory.Policy().V1().PodDisruptionBudgets().Informer(), factory.Core().V1().PersistentVolumeClaims().Informer())
		}
	}
	return list
}

// start starts the informers and waits until they have synced. If a request fails, for example
// because a role does not allow it, the pass is aborted.
func start(ctx context.Context, cancel context.CancelCauseFunc, factory informers.SharedInformerFactory, list []cache.SharedIndexInformer) error {
	for _, informer := range list {
		err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { cancel(err) })
		if err != nil {
			return fmt.Errorf("watch nodes and pods: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("read nodes and pods: %w", cause)
	}
	return nil
}

func (p *pass) readyNodes() (ready []*corev1.Node, err error) {
	nodes, err := p.factory.Core().V1().Nodes().Lister().List(p.selector)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if nodeutil.IsReady(node) {
			ready = append(ready, node)
		}
	}
	if len(ready) < 2 {
		return nil, ErrFewNodes
	}
	return ready, nil
}

// run first evicts pods that violate a rule, and then balances the remaining pods.
func (p *pass) run(ctx context.Context, nodes []*corev1.Node) error {
	var errs []error
	for _, profile := range p.profiles {
		errs = append(errs, profile.RunDeschedulePlugins(ctx, nodes).Err)
	}
	for _, profile := range p.profiles {
		errs = append(errs, profile.RunBalancePlugins(ctx, nodes).Err)
	}
	if err := errors.Join(errs...); err != nil {
		return errors.New(strings.TrimSpace(err.Error()))
	}
	return context.Cause(ctx)
}

func removeManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
