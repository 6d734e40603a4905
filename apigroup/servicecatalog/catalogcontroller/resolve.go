package catalogcontroller

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

// offer holds an instance's class, plan and broker.
type offer struct {
	clusterScoped       bool
	className, planName string
	class               v1beta1.CommonServiceClassSpec
	plan                v1beta1.CommonServicePlanSpec
	classGone, planGone bool // removed from the broker's catalog
	broker              *brokerView
	brokerKey           controller.Key
}

// bindable reports whether instances with the plan can be bound.
func (o *offer) bindable() bool {
	if o.plan.Bindable != nil {
		return *o.plan.Bindable
	}
	return o.class.Bindable
}

// String describes the class and the plan.
func (o *offer) String() string {
	return fmt.Sprintf("class %q, plan %q", o.class.ExternalName, o.plan.ExternalName)
}

func waiting(reason, format string, values ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, values...), definite: true}
}

// resolve sets an instance's references if they are missing, and returns the referenced objects. If
// an object does not exist, the error is a *problem.
func (r *reconciler) resolve(ctx context.Context, instance *v1beta1.ServiceInstance) (*offer, error) {
	if classKey(instance) == "" {
		if err := r.setReferences(ctx, instance); err != nil {
			return nil, err
		}
	}
	if instance.Spec.ClusterServiceClassRef != nil {
		return r.clusterOffer(ctx, instance.Spec.ClusterServiceClassRef.Name, instance.Spec.ClusterServicePlanRef.Name)
	}
	return r.localOffer(ctx, instance.Namespace, instance.Spec.ServiceClassRef.Name, instance.Spec.ServicePlanRef.Name)
}

func (r *reconciler) clusterOffer(ctx context.Context, className, planName string) (*offer, error) {
	class, err := r.client.ClusterClasses().Get(ctx, className, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "ReferencesNonexistentServiceClass", "ClusterServiceClass", className)
	}
	plan, err := r.client.ClusterPlans().Get(ctx, planName, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "ReferencesNonexistentServicePlan", "ClusterServicePlan", planName)
	}
	o := &offer{
		clusterScoped: true, className: className, planName: planName, class: class.Spec.CommonServiceClassSpec, plan: plan.Spec.CommonServicePlanSpec,
		classGone: class.Status.RemovedFromBrokerCatalog, planGone: plan.Status.RemovedFromBrokerCatalog,
	}
	return r.withBroker(ctx, o, controller.Key{Name: class.Spec.ClusterServiceBrokerName})
}

func (r *reconciler) localOffer(ctx context.Context, namespace, className, planName string) (*offer, error) {
	class, err := r.client.Classes(namespace).Get(ctx, className, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "ReferencesNonexistentServiceClass", "ServiceClass", className)
	}
	plan, err := r.client.Plans(namespace).Get(ctx, planName, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "ReferencesNonexistentServicePlan", "ServicePlan", planName)
	}
	o := &offer{
		className: className, planName: planName, class: class.Spec.CommonServiceClassSpec, plan: plan.Spec.CommonServicePlanSpec,
		classGone: class.Status.RemovedFromBrokerCatalog, planGone: plan.Status.RemovedFromBrokerCatalog,
	}
	return r.withBroker(ctx, o, controller.Key{Namespace: namespace, Name: class.Spec.ServiceBrokerName})
}

func (r *reconciler) withBroker(ctx context.Context, o *offer, key controller.Key) (*offer, error) {
	broker, err := r.broker(ctx, key)
	if err != nil {
		return nil, err
	}
	if broker == nil {
		return nil, waiting("ReferencesNonexistentBroker", "The instance references a broker %q that does not exist", key)
	}
	o.broker = broker
	return o, nil
}

func missing(err error, reason, kind, name string) error {
	if ignoreNotFound(err) != nil {
		return err
	}
	return waiting(reason, "The instance references a %s %q that does not exist", kind, name)
}

// setReferences resolves the names in the spec and writes the references.
func (r *reconciler) setReferences(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	spec := &instance.Spec
	class, err := r.findClass(ctx, instance)
	if err != nil {
		return err
	}
	plan, err := r.findPlan(ctx, instance, class)
	if err != nil {
		return err
	}
	if isClusterScoped(&spec.PlanReference) {
		spec.ClusterServiceClassRef = &v1beta1.ClusterObjectReference{Name: class}
		spec.ClusterServicePlanRef = &v1beta1.ClusterObjectReference{Name: plan}
	} else {
		spec.ServiceClassRef = &v1beta1.LocalObjectReference{Name: class}
		spec.ServicePlanRef = &v1beta1.LocalObjectReference{Name: plan}
	}
	updated, err := r.client.UpdateReference(ctx, instance)
	if err != nil {
		return fmt.Errorf("update references: %w", err)
	}
	*instance = *updated
	return nil
}

func isClusterScoped(p *v1beta1.PlanReference) bool {
	return p.ClusterServiceClassExternalName != "" || p.ClusterServiceClassExternalID != "" || p.ClusterServiceClassName != ""
}

// selector returns a field selector for the first name that is set.
func selector(externalName, externalID, name string) fields.Selector {
	switch {
	case externalName != "":
		return fields.OneTermEqualSelector("spec.externalName", externalName)
	case externalID != "":
		return fields.OneTermEqualSelector("spec.externalID", externalID)
	}
	return fields.OneTermEqualSelector("metadata.name", name)
}

func (r *reconciler) findClass(ctx context.Context, instance *v1beta1.ServiceInstance) (name string, err error) {
	p := &instance.Spec.PlanReference
	var matches []string
	var by fields.Selector
	if isClusterScoped(p) {
		by = selector(p.ClusterServiceClassExternalName, p.ClusterServiceClassExternalID, p.ClusterServiceClassName)
		matches, err = find(ctx, r.clusterClasses, r.client.ClusterClasses(), "", by, func(class *v1beta1.ClusterServiceClass) bool {
			return by.Matches(names(class, class.Spec.ExternalName, class.Spec.ExternalID))
		})
	} else {
		by = selector(p.ServiceClassExternalName, p.ServiceClassExternalID, p.ServiceClassName)
		matches, err = find(ctx, r.classes, r.client.Classes(instance.Namespace), instance.Namespace, by, func(class *v1beta1.ServiceClass) bool {
			return by.Matches(names(class, class.Spec.ExternalName, class.Spec.ExternalID))
		})
	}
	if err != nil {
		return "", err
	}
	return only(matches, "ReferencesNonexistentServiceClass", "class", by)
}

func (r *reconciler) findPlan(ctx context.Context, instance *v1beta1.ServiceInstance, class string) (name string, err error) {
	p := &instance.Spec.PlanReference
	var matches []string
	var by fields.Selector
	if isClusterScoped(p) {
		by = selector(p.ClusterServicePlanExternalName, p.ClusterServicePlanExternalID, p.ClusterServicePlanName)
		matches, err = find(ctx, r.clusterPlans, r.client.ClusterPlans(), "", by, func(plan *v1beta1.ClusterServicePlan) bool {
			return plan.Spec.ClusterServiceClassRef.Name == class && by.Matches(names(plan, plan.Spec.ExternalName, plan.Spec.ExternalID))
		})
	} else {
		by = selector(p.ServicePlanExternalName, p.ServicePlanExternalID, p.ServicePlanName)
		matches, err = find(ctx, r.plans, r.client.Plans(instance.Namespace), instance.Namespace, by, func(plan *v1beta1.ServicePlan) bool {
			return plan.Spec.ServiceClassRef.Name == class && by.Matches(names(plan, plan.Spec.ExternalName, plan.Spec.ExternalID))
		})
	}
	if err != nil {
		return "", err
	}
	return only(matches, "ReferencesNonexistentServicePlan", "plan", by)
}

// names returns the fields that a selector of classes or plans can contain.
func names(object metav1.Object, externalName, externalID string) fields.Set {
	return fields.Set{"metadata.name": object.GetName(), "spec.externalName": externalName, "spec.externalID": externalID}
}

// find returns the names of the matching objects in a namespace, or of cluster-scoped objects. If
// the informer contains exactly one match, find does not list the objects through the API server.
// Such a list can wait for up to 100 ms until the server's cache is up to date.
func find[T interface {
	runtime.Object
	metav1.Object
}, L runtime.Object](ctx context.Context, informer cache.SharedIndexInformer, client *gentype.ClientWithList[T, L],
	namespace string, by fields.Selector, match func(T) bool) (matches []string, err error) {
	objects, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if typed := object.(T); match(typed) {
			matches = append(matches, typed.GetName())
		}
	}
	if len(matches) == 1 {
		return matches, nil
	}
	matches = nil
	list, err := client.List(ctx, metav1.ListOptions{FieldSelector: by.String()})
	if err != nil {
		return nil, err
	}
	err = apimeta.EachListItem(list, func(object runtime.Object) error {
		if typed := any(object).(T); match(typed) {
			matches = append(matches, typed.GetName())
		}
		return nil
	})
	return matches, err
}

// only returns the single match. It returns an error if there is no match or there are several
// matches.
func only(matches []string, reason, kind string, by fields.Selector) (name string, err error) {
	switch len(matches) {
	case 0:
		return "", waiting(reason, "The instance references a service %s that does not exist: %s", kind, by)
	case 1:
		return matches[0], nil
	}
	return "", waiting(reason, "The instance references a service %s that is not unique: %s; name it by its ID", kind, by)
}
