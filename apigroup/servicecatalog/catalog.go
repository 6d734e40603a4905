package servicecatalog

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// catalog reads classes and plans from this server's stores.
type catalog struct {
	stores map[schema.GroupResource]*registry.Store
}

// class holds the fields that the admission plugins read from a class of either kind.
type class struct {
	clusterScoped                  bool
	name, externalName, externalID string
	planUpdatable                  bool
}

// plan holds the fields that the admission plugins read from a plan of either kind.
type plan struct {
	name, externalName, externalID string
	updatable                      *bool // nil if the class decides
	removed                        bool  // the broker no longer offers the plan
}

func planOf(name string, spec *v1beta1.CommonServicePlanSpec, removed bool) plan {
	return plan{name, spec.ExternalName, spec.ExternalID, spec.PlanUpdatable, removed}
}

// isReferenced reports whether a reference names the plan.
func (p *plan) isReferenced(by *v1beta1.PlanReference) bool {
	return p.externalName == cmp.Or(by.ClusterServicePlanExternalName, by.ServicePlanExternalName) ||
		p.externalID == cmp.Or(by.ClusterServicePlanExternalID, by.ServicePlanExternalID) ||
		p.name == cmp.Or(by.ClusterServicePlanName, by.ServicePlanName)
}

// class returns the referenced class. It returns nil if the class does not exist or if several
// classes have the external name.
func (c *catalog) class(ctx context.Context, namespace string, p *v1beta1.PlanReference) (*class, error) {
	clusterScoped, selector := true, fields.Selector(nil)
	equal := fields.OneTermEqualSelector
	switch {
	case p.ClusterServiceClassExternalName != "":
		selector = equal("spec.externalName", p.ClusterServiceClassExternalName)
	case p.ClusterServiceClassExternalID != "":
		selector = equal("spec.externalID", p.ClusterServiceClassExternalID)
	case p.ClusterServiceClassName != "":
		selector = equal("metadata.name", p.ClusterServiceClassName)
	case p.ServiceClassExternalName != "":
		clusterScoped, selector = false, equal("spec.externalName", p.ServiceClassExternalName)
	case p.ServiceClassExternalID != "":
		clusterScoped, selector = false, equal("spec.externalID", p.ServiceClassExternalID)
	default:
		clusterScoped, selector = false, equal("metadata.name", p.ServiceClassName)
	}
	var matches []class
	if clusterScoped {
		list, err := c.list(ctx, "clusterserviceclasses", "", selector)
		if err != nil {
			return nil, err
		}
		for _, item := range list.(*v1beta1.ClusterServiceClassList).Items {
			matches = append(matches, class{true, item.Name, item.Spec.ExternalName, item.Spec.ExternalID, item.Spec.PlanUpdatable})
		}
	} else {
		list, err := c.list(ctx, "serviceclasses", namespace, selector)
		if err != nil {
			return nil, err
		}
		for _, item := range list.(*v1beta1.ServiceClassList).Items {
			matches = append(matches, class{false, item.Name, item.Spec.ExternalName, item.Spec.ExternalID, item.Spec.PlanUpdatable})
		}
	}
	if len(matches) != 1 {
		return nil, nil
	}
	return &matches[0], nil
}

// plans returns a class's plans.
func (c *catalog) plans(ctx context.Context, namespace string, of *class) (plans []plan, err error) {
	if of.clusterScoped {
		list, err := c.list(ctx, "clusterserviceplans", "", fields.OneTermEqualSelector("spec.clusterServiceClassRef.name", of.name))
		if err != nil {
			return nil, err
		}
		for _, item := range list.(*v1beta1.ClusterServicePlanList).Items {
			plans = append(plans, planOf(item.Name, &item.Spec.CommonServicePlanSpec, item.Status.RemovedFromBrokerCatalog))
		}
		return plans, nil
	}
	list, err := c.list(ctx, "serviceplans", namespace, fields.OneTermEqualSelector("spec.serviceClassRef.name", of.name))
	if err != nil {
		return nil, err
	}
	for _, item := range list.(*v1beta1.ServicePlanList).Items {
		plans = append(plans, planOf(item.Name, &item.Spec.CommonServicePlanSpec, item.Status.RemovedFromBrokerCatalog))
	}
	return plans, nil
}

func (c *catalog) list(ctx context.Context, of, namespace string, selector fields.Selector) (runtime.Object, error) {
	return c.read(ctx, of, namespace, &internalversion.ListOptions{FieldSelector: selector})
}

// cached is like list, but does not wait until this server's cache is up to date.
func (c *catalog) cached(ctx context.Context, of, namespace string) (runtime.Object, error) {
	return c.read(ctx, of, namespace, &internalversion.ListOptions{ResourceVersion: "0"})
}

func (c *catalog) read(ctx context.Context, of, namespace string, options *internalversion.ListOptions) (runtime.Object, error) {
	store := c.stores[resource(of)]
	if store == nil {
		return nil, fmt.Errorf("list %s: the API group is not ready", of)
	}
	list, err := store.List(request.WithNamespace(ctx, namespace), options)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", of, err)
	}
	return list, nil
}
