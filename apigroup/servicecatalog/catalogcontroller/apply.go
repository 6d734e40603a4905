package catalogcontroller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

// kind defines how the controller handles one of the four class and plan kinds.
type kind[T metav1.Object, S any] struct {
	informer cache.SharedIndexInformer
	// client returns a client that creates, updates and deletes objects in a namespace.
	client func(namespace string) writer[T]
	// broker returns the broker name of an object.
	broker func(T) string
	spec   func(T) *S
	status func(T) *v1beta1.CatalogStatus
	// create returns a new object without its spec.
	create func(metav1.ObjectMeta) T
	// keep copies the stored spec fields that the broker's catalog does not contain.
	keep func(spec, existing *S)
}

type writer[T metav1.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// apply creates and updates a broker's classes and plans, and marks classes and plans that the
// broker no longer offers.
func (r *reconciler) apply(ctx context.Context, broker *brokerView, offered offers) error {
	if broker.namespace == "" {
		classes, plans := map[string]v1beta1.ClusterServiceClassSpec{}, map[string]v1beta1.ClusterServicePlanSpec{}
		for name, spec := range offered.classes {
			classes[name] = v1beta1.ClusterServiceClassSpec{CommonServiceClassSpec: spec, ClusterServiceBrokerName: broker.name}
		}
		for name, plan := range offered.plans {
			plans[name] = v1beta1.ClusterServicePlanSpec{CommonServicePlanSpec: plan.spec, ClusterServiceBrokerName: broker.name,
				ClusterServiceClassRef: v1beta1.ClusterObjectReference{Name: plan.class}}
		}
		return errors.Join(applyKind(ctx, r.clusterClassKind(), broker, classes), applyKind(ctx, r.clusterPlanKind(), broker, plans))
	}
	classes, plans := map[string]v1beta1.ServiceClassSpec{}, map[string]v1beta1.ServicePlanSpec{}
	for name, spec := range offered.classes {
		classes[name] = v1beta1.ServiceClassSpec{CommonServiceClassSpec: spec, ServiceBrokerName: broker.name}
	}
	for name, plan := range offered.plans {
		plans[name] = v1beta1.ServicePlanSpec{CommonServicePlanSpec: plan.spec, ServiceBrokerName: broker.name,
			ServiceClassRef: v1beta1.LocalObjectReference{Name: plan.class}}
	}
	return errors.Join(applyKind(ctx, r.classKind(), broker, classes), applyKind(ctx, r.planKind(), broker, plans))
}

// deleteOffers deletes all classes and plans of a broker.
func (r *reconciler) deleteOffers(ctx context.Context, broker *brokerView) error {
	if broker.namespace == "" {
		return errors.Join(deleteKind(ctx, r.clusterPlanKind(), broker), deleteKind(ctx, r.clusterClassKind(), broker))
	}
	return errors.Join(deleteKind(ctx, r.planKind(), broker), deleteKind(ctx, r.classKind(), broker))
}

func applyKind[T metav1.Object, S any](ctx context.Context, k kind[T, S], broker *brokerView, specs map[string]S) error {
	var errs []error
	existing := objectsOf(k, broker)
	client := k.client(broker.namespace)
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		spec := specs[name]
		object, ok := existing[name]
		if !ok {
			created := k.create(metav1.ObjectMeta{Namespace: broker.namespace, Name: name, OwnerReferences: ownedBy(broker)})
			*k.spec(created) = spec
			if _, err := client.Create(ctx, created, metav1.CreateOptions{}); err != nil {
				errs = append(errs, fmt.Errorf("create %q: %w", name, err))
			}
			continue
		}
		k.keep(&spec, k.spec(object))
		if err := updateOffer(ctx, k, client, object, spec); err != nil {
			errs = append(errs, fmt.Errorf("update %q: %w", name, err))
		}
	}
	for name, object := range existing {
		if _, offered := specs[name]; offered || k.status(object).RemovedFromBrokerCatalog {
			continue
		}
		k.status(object).RemovedFromBrokerCatalog = true
		if _, err := client.UpdateStatus(ctx, object, metav1.UpdateOptions{}); ignoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("mark %q as removed: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// updateOffer updates a stored class or plan that the broker offers, and clears the flag that marks
// it as removed.
func updateOffer[T metav1.Object, S any](ctx context.Context, k kind[T, S], client writer[T], object T, spec S) (err error) {
	if !apiequality.Semantic.DeepEqual(*k.spec(object), spec) {
		*k.spec(object) = spec
		if object, err = client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if !k.status(object).RemovedFromBrokerCatalog {
		return nil
	}
	k.status(object).RemovedFromBrokerCatalog = false
	_, err = client.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

// objectsOf returns copies of a broker's cached objects, keyed by name.
func objectsOf[T metav1.Object, S any](k kind[T, S], broker *brokerView) map[string]T {
	objects := map[string]T{}
	for _, cached := range k.informer.GetStore().List() {
		object := cached.(T)
		if object.GetNamespace() == broker.namespace && k.broker(object) == broker.name {
			objects[object.GetName()] = deepCopy(object)
		}
	}
	return objects
}

func deleteKind[T metav1.Object, S any](ctx context.Context, k kind[T, S], broker *brokerView) error {
	var errs []error
	for name := range objectsOf(k, broker) {
		if err := ignoreNotFound(k.client(broker.namespace).Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
			errs = append(errs, fmt.Errorf("delete %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// ownedBy returns an owner reference to a broker. The garbage collector uses it to delete classes
// that were created while the broker was being deleted.
func ownedBy(broker *brokerView) []metav1.OwnerReference {
	kind := "ClusterServiceBroker"
	if broker.namespace != "" {
		kind = "ServiceBroker"
	}
	yes := false
	return []metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion().String(), Kind: kind, Name: broker.name, UID: broker.GetUID(), BlockOwnerDeletion: &yes,
	}}
}

func deepCopy[T metav1.Object](object T) T {
	var copied any
	switch typed := any(object).(type) {
	case *v1beta1.ClusterServiceClass:
		copied = typed.DeepCopy()
	case *v1beta1.ServiceClass:
		copied = typed.DeepCopy()
	case *v1beta1.ClusterServicePlan:
		copied = typed.DeepCopy()
	case *v1beta1.ServicePlan:
		copied = typed.DeepCopy()
	}
	return copied.(T)
}

func keepClassFields(spec, existing *v1beta1.CommonServiceClassSpec) {
	spec.DefaultProvisionParameters = existing.DefaultProvisionParameters
}

func keepPlanFields(spec, existing *v1beta1.CommonServicePlanSpec) {
	spec.DefaultProvisionParameters = existing.DefaultProvisionParameters
}

func (r *reconciler) clusterClassKind() kind[*v1beta1.ClusterServiceClass, v1beta1.ClusterServiceClassSpec] {
	type class = v1beta1.ClusterServiceClass
	return kind[*class, v1beta1.ClusterServiceClassSpec]{
		informer: r.clusterClasses,
		client:   func(string) writer[*class] { return r.client.ClusterClasses() },
		broker:   func(c *class) string { return c.Spec.ClusterServiceBrokerName },
		spec:     func(c *class) *v1beta1.ClusterServiceClassSpec { return &c.Spec },
		status:   func(c *class) *v1beta1.CatalogStatus { return &c.Status.CatalogStatus },
		create:   func(meta metav1.ObjectMeta) *class { return &class{ObjectMeta: meta} },
		keep: func(spec, existing *v1beta1.ClusterServiceClassSpec) {
			keepClassFields(&spec.CommonServiceClassSpec, &existing.CommonServiceClassSpec)
		},
	}
}

func (r *reconciler) classKind() kind[*v1beta1.ServiceClass, v1beta1.ServiceClassSpec] {
	type class = v1beta1.ServiceClass
	return kind[*class, v1beta1.ServiceClassSpec]{
		informer: r.classes,
		client:   func(namespace string) writer[*class] { return r.client.Classes(namespace) },
		broker:   func(c *class) string { return c.Spec.ServiceBrokerName },
		spec:     func(c *class) *v1beta1.ServiceClassSpec { return &c.Spec },
		status:   func(c *class) *v1beta1.CatalogStatus { return &c.Status.CatalogStatus },
		create:   func(meta metav1.ObjectMeta) *class { return &class{ObjectMeta: meta} },
		keep: func(spec, existing *v1beta1.ServiceClassSpec) {
			keepClassFields(&spec.CommonServiceClassSpec, &existing.CommonServiceClassSpec)
		},
	}
}

func (r *reconciler) clusterPlanKind() kind[*v1beta1.ClusterServicePlan, v1beta1.ClusterServicePlanSpec] {
	type plan = v1beta1.ClusterServicePlan
	return kind[*plan, v1beta1.ClusterServicePlanSpec]{
		informer: r.clusterPlans,
		client:   func(string) writer[*plan] { return r.client.ClusterPlans() },
		broker:   func(p *plan) string { return p.Spec.ClusterServiceBrokerName },
		spec:     func(p *plan) *v1beta1.ClusterServicePlanSpec { return &p.Spec },
		status:   func(p *plan) *v1beta1.CatalogStatus { return &p.Status.CatalogStatus },
		create:   func(meta metav1.ObjectMeta) *plan { return &plan{ObjectMeta: meta} },
		keep: func(spec, existing *v1beta1.ClusterServicePlanSpec) {
			keepPlanFields(&spec.CommonServicePlanSpec, &existing.CommonServicePlanSpec)
		},
	}
}

func (r *reconciler) planKind() kind[*v1beta1.ServicePlan, v1beta1.ServicePlanSpec] {
	type plan = v1beta1.ServicePlan
	return kind[*plan, v1beta1.ServicePlanSpec]{
		informer: r.plans,
		client:   func(namespace string) writer[*plan] { return r.client.Plans(namespace) },
		broker:   func(p *plan) string { return p.Spec.ServiceBrokerName },
		spec:     func(p *plan) *v1beta1.ServicePlanSpec { return &p.Spec },
		status:   func(p *plan) *v1beta1.CatalogStatus { return &p.Status.CatalogStatus },
		create:   func(meta metav1.ObjectMeta) *plan { return &plan{ObjectMeta: meta} },
		keep: func(spec, existing *v1beta1.ServicePlanSpec) {
			keepPlanFields(&spec.CommonServicePlanSpec, &existing.CommonServicePlanSpec)
		},
	}
}

var _ writer[*v1beta1.ServicePlan] = &gentype.ClientWithList[*v1beta1.ServicePlan, *v1beta1.ServicePlanList]{}

// removedWatches returns watches that enqueue a key for a namespace, or for the cluster scope, when
// one of its classes or plans changes. The deletion of an instance enqueues the key of its
// namespace and the key of the cluster scope.
func (r *reconciler) removedWatches() []controller.Watch {
	all := func(object any) []controller.Key {
		accessor := object.(metav1.Object)
		return []controller.Key{{Namespace: accessor.GetNamespace(), Name: "removed"}}
	}
	ofInstance := func(object any) []controller.Key {
		return append(all(object), controller.Key{Name: "removed"})
	}
	unchanged := func(_, _ any) bool { return false }
	return []controller.Watch{
		{Informer: r.clusterClasses, Keys: all}, {Informer: r.classes, Keys: all},
		{Informer: r.clusterPlans, Keys: all}, {Informer: r.plans, Keys: all},
		{Informer: r.instances, Keys: ofInstance, Changed: unchanged},
	}
}

// removeUnused deletes the plans and classes that no instance uses and that their broker no longer
// offers. key selects the objects in one namespace, or the cluster-scoped objects.
func (r *reconciler) removeUnused(ctx context.Context, key controller.Key) error {
	used := map[string]bool{}
	for _, cached := range r.instances.GetStore().List() {
		spec := &cached.(*v1beta1.ServiceInstance).Spec
		switch {
		case key.Namespace == "" && spec.ClusterServiceClassRef != nil:
			used["class/"+spec.ClusterServiceClassRef.Name] = true
			if spec.ClusterServicePlanRef != nil {
				used["plan/"+spec.ClusterServicePlanRef.Name] = true
			}
		case cached.(*v1beta1.ServiceInstance).Namespace == key.Namespace && spec.ServiceClassRef != nil:
			used["class/"+spec.ServiceClassRef.Name] = true
			if spec.ServicePlanRef != nil {
				used["plan/"+spec.ServicePlanRef.Name] = true
			}
		}
	}
	if key.Namespace == "" {
		return errors.Join(deleteUnused(ctx, r.clusterPlanKind(), "plan/", "", used), deleteUnused(ctx, r.clusterClassKind(), "class/", "", used))
	}
	return errors.Join(deleteUnused(ctx, r.planKind(), "plan/", key.Namespace, used), deleteUnused(ctx, r.classKind(), "class/", key.Namespace, used))
}

func deleteUnused[T metav1.Object, S any](ctx context.Context, k kind[T, S], prefix, namespace string, used map[string]bool) error {
	var errs []error
	for _, cached := range k.informer.GetStore().List() {
		object := cached.(T)
		if object.GetNamespace() != namespace || !k.status(object).RemovedFromBrokerCatalog || used[prefix+object.GetName()] {
			continue
		}
		uid, version := object.GetUID(), object.GetResourceVersion()
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
		if err := ignoreNotFound(k.client(namespace).Delete(ctx, object.GetName(), options)); err != nil {
			errs = append(errs, fmt.Errorf("delete %q: %w", object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
