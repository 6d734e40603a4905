package catalogcontroller

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// offers contains a catalog's classes and plans, keyed by object name.
type offers struct {
	classes map[string]v1beta1.CommonServiceClassSpec
	plans   map[string]planOffer
}

type planOffer struct {
	class string
	spec  v1beta1.CommonServicePlanSpec
}

// convert returns the catalog's classes and plans that match the broker's restrictions. The error
// lists all invalid entries.
func convert(broker *brokerView, catalog *osb.Catalog) (offers, error) {
	result := offers{map[string]v1beta1.CommonServiceClassSpec{}, map[string]planOffer{}}
	var errs []error
	fail := func(format string, values ...any) { errs = append(errs, fmt.Errorf(format, values...)) }
	restrictions := v1beta1.CatalogRestrictions{}
	if broker.spec.CatalogRestrictions != nil {
		restrictions = *broker.spec.CatalogRestrictions
	}
	serviceNames := map[string]bool{}
	for i := range catalog.Services {
		service := &catalog.Services[i]
		name := objectName(service.ID)
		if err := validOffer(service.ID, service.Name, service.Description); err != nil {
			fail("service %q: %w", service.Name, err)
			continue
		}
		if _, exists := result.classes[name]; exists || serviceNames[service.Name] {
			fail("service %q: its name or its ID %q is not unique in the catalog", service.Name, service.ID)
			continue
		}
		serviceNames[service.Name] = true
		class := classOf(service)
		if !matches(restrictions.ServiceClass, classFields(broker, name, &class)) {
			continue
		}
		selected, planErrs := convertPlans(broker, service, name, restrictions.ServicePlan)
		errs = append(errs, planErrs...)
		if len(selected) == 0 && len(service.Plans) > 0 {
			continue // a class without plans cannot be used
		}
		result.classes[name] = class
		for planName, plan := range selected {
			if _, exists := result.plans[planName]; exists {
				fail("plan %q of service %q: its ID %q is not unique in the catalog", plan.spec.ExternalName, service.Name, plan.spec.ExternalID)
			}
			result.plans[planName] = plan
		}
	}
	return result, errors.Join(errs...)
}

func convertPlans(broker *brokerView, service *osb.Service, class string, restrictions []string) (selected map[string]planOffer, errs []error) {
	selected = map[string]planOffer{}
	names := map[string]bool{}
	for i := range service.Plans {
		plan := &service.Plans[i]
		if err := validOffer(plan.ID, plan.Name, plan.Description); err != nil {
			errs = append(errs, fmt.Errorf("plan %q of service %q: %w", plan.Name, service.Name, err))
			continue
		}
		name := objectName(plan.ID)
		if _, exists := selected[name]; exists || names[plan.Name] {
			errs = append(errs, fmt.Errorf("plan %q of service %q: its name or its ID %q is not unique", plan.Name, service.Name, plan.ID))
			continue
		}
		names[plan.Name] = true
		spec := planOf(plan)
		if len(spec.MaintenanceVersion) > maxExternal {
			errs = append(errs, fmt.Errorf("plan %q of service %q: its version is longer than %d characters", plan.Name, service.Name, maxExternal))
			continue
		}
		if matches(restrictions, planFields(broker, name, class, &spec)) {
			selected[name] = planOffer{class, spec}
		}
	}
	return selected, errs
}

// maxExternal is the maximum length of names and IDs that the API server accepts.
const maxExternal = 250

func validOffer(id, name, description string) error {
	switch {
	case id == "" || name == "" || description == "":
		return errors.New("id, name and description must not be empty")
	case len(id) > maxExternal || len(name) > maxExternal:
		return fmt.Errorf("id and name must not be longer than %d characters", maxExternal)
	}
	if messages := validation.NameIsDNSSubdomain(objectName(id), false); len(messages) > 0 {
		return fmt.Errorf("its ID cannot be the name of an object: %s", strings.Join(messages, ", "))
	}
	return nil
}

// objectName returns the object name for an ID. If the whole ID is a valid object name, objectName
// returns it unchanged. Otherwise, it replaces the escape character z and each character that is
// invalid in object names with z, the character's hexadecimal code and another z.
func objectName(id string) string {
	if len(validation.NameIsDNSSubdomain(id, false)) == 0 {
		return id
	}
	var name strings.Builder
	for _, char := range []byte(id) {
		if char >= 'a' && char < 'z' || char >= '0' && char <= '9' || char == '-' && name.Len() > 0 {
			name.WriteByte(char)
			continue
		}
		name.WriteString("z" + hex.EncodeToString([]byte{char}) + "z")
	}
	return name.String()
}

func classOf(service *osb.Service) v1beta1.CommonServiceClassSpec {
	return v1beta1.CommonServiceClassSpec{
		ExternalName: service.Name, ExternalID: service.ID, Description: service.Description,
		Bindable: service.Bindable, BindingRetrievable: service.BindingsRetrievable,
		InstancesRetrievable: service.InstancesRetrievable, PlanUpdatable: service.PlanUpdateable,
		Tags: service.Tags, Requires: service.Requires, ExternalMetadata: raw(service.Metadata),
	}
}

func planOf(plan *osb.Plan) v1beta1.CommonServicePlanSpec {
	version := ""
	if plan.MaintenanceInfo != nil {
		version = plan.MaintenanceInfo.Version
	}
	return v1beta1.CommonServicePlanSpec{
		MaintenanceVersion: version,
		ExternalName:       plan.Name, ExternalID: plan.ID, Description: plan.Description,
		Bindable: plan.Bindable, Free: plan.Free == nil || *plan.Free, ExternalMetadata: raw(plan.Metadata),
		PlanUpdatable: plan.PlanUpdateable, MaximumPollingDurationSeconds: max(0, plan.MaximumPollingDuration),
		InstanceCreateParameterSchema:       raw(plan.Schemas.ServiceInstance.Create.Parameters),
		InstanceUpdateParameterSchema:       raw(plan.Schemas.ServiceInstance.Update.Parameters),
		ServiceBindingCreateParameterSchema: raw(plan.Schemas.ServiceBinding.Create.Parameters),
	}
}

func raw(text json.RawMessage) *runtime.RawExtension {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	return &runtime.RawExtension{Raw: text}
}

func classFields(broker *brokerView, name string, class *v1beta1.CommonServiceClassSpec) labels.Set {
	set := labels.Set{"name": name, "spec.externalName": class.ExternalName, "spec.externalID": class.ExternalID}
	set[scoped(broker, "spec.clusterServiceBrokerName", "spec.serviceBrokerName")] = broker.name
	return set
}

func planFields(broker *brokerView, name, class string, plan *v1beta1.CommonServicePlanSpec) labels.Set {
	set := labels.Set{
		"name": name, "spec.externalName": plan.ExternalName, "spec.externalID": plan.ExternalID, "spec.free": strconv.FormatBool(plan.Free),
	}
	set[scoped(broker, "spec.clusterServiceBrokerName", "spec.serviceBrokerName")] = broker.name
	set[scoped(broker, "spec.clusterServiceClass.name", "spec.serviceClass.name")] = class
	return set
}

func scoped(broker *brokerView, cluster, local string) string {
	if broker.namespace == "" {
		return cluster
	}
	return local
}

// matches reports whether the fields match all requirements. The API server has already validated
// the requirements.
func matches(requirements []string, of labels.Set) bool {
	for _, text := range requirements {
		selector, err := labels.Parse(text)
		if err != nil || !selector.Matches(of) {
			return false
		}
	}
	return true
}
