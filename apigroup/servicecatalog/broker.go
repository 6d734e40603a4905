package servicecatalog

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/apiserver"
)

func clusterBrokers() apiserver.Served {
	type broker = *v1beta1.ClusterServiceBroker
	return apiserver.Resource[broker]{
		Plural: "clusterservicebrokers", Status: true,
		Default: func(b broker) {
			setBrokerDefaults(&b.Spec.CommonServiceBrokerSpec, &b.Status.CommonServiceBrokerStatus)
		},
		Prepare: func(_ context.Context, b, old broker) {
			if old == nil {
				addFinalizer(b)
			}
		},
		Validate: func(_ context.Context, b, old broker) field.ErrorList {
			var previous *v1beta1.CommonServiceBrokerSpec
			if old != nil {
				previous = &old.Spec.CommonServiceBrokerSpec
			}
			errs := validateBroker(&b.Spec.CommonServiceBrokerSpec, previous, clusterClassRequirements(), clusterPlanRequirements())
			if auth := b.Spec.AuthInfo; auth != nil {
				errs = append(errs, validateClusterAuth(auth, field.NewPath("spec", "authInfo"))...)
			}
			return errs
		},
		Columns: brokerColumns(func(b broker) (*v1beta1.CommonServiceBrokerSpec, *v1beta1.CommonServiceBrokerStatus) {
			return &b.Spec.CommonServiceBrokerSpec, &b.Status.CommonServiceBrokerStatus
		}),
	}
}

func brokers() apiserver.Served {
	type broker = *v1beta1.ServiceBroker
	return apiserver.Resource[broker]{
		Plural: "servicebrokers", Namespaced: true, Status: true,
		Default: func(b broker) {
			setBrokerDefaults(&b.Spec.CommonServiceBrokerSpec, &b.Status.CommonServiceBrokerStatus)
		},
		Prepare: func(_ context.Context, b, old broker) {
			if old == nil {
				addFinalizer(b)
			}
		},
		Validate: func(_ context.Context, b, old broker) field.ErrorList {
			var previous *v1beta1.CommonServiceBrokerSpec
			if old != nil {
				previous = &old.Spec.CommonServiceBrokerSpec
			}
			errs := validateBroker(&b.Spec.CommonServiceBrokerSpec, previous, classRequirements(), planRequirements())
			if auth := b.Spec.AuthInfo; auth != nil {
				errs = append(errs, validateAuth(auth, field.NewPath("spec", "authInfo"))...)
			}
			return errs
		},
		Columns: brokerColumns(func(b broker) (*v1beta1.CommonServiceBrokerSpec, *v1beta1.CommonServiceBrokerStatus) {
			return &b.Spec.CommonServiceBrokerSpec, &b.Status.CommonServiceBrokerStatus
		}),
	}
}

func brokerColumns[T apiserver.Object](parts func(T) (*v1beta1.CommonServiceBrokerSpec, *v1beta1.CommonServiceBrokerStatus)) []apiserver.Column[T] {
	return []apiserver.Column[T]{
		{Name: "URL", Description: "Address of the broker", Value: func(b T) any { spec, _ := parts(b); return spec.URL }},
		{Name: "Status", Description: "State of the broker", Value: func(b T) any { _, status := parts(b); return status.LastConditionState }},
		apiserver.Age[T](),
	}
}

func setBrokerDefaults(spec *v1beta1.CommonServiceBrokerSpec, status *v1beta1.CommonServiceBrokerStatus) {
	if spec.RelistBehavior == "" {
		spec.RelistBehavior = v1beta1.RelistBehaviorDuration
	}
	if status.Conditions == nil {
		status.Conditions = []metav1.Condition{}
	}
}

func validateBroker(spec, old *v1beta1.CommonServiceBrokerSpec, classKeys, planKeys []string) (errs field.ErrorList) {
	at := field.NewPath("spec")
	errs = append(errs, validateURL(spec.URL, at.Child("url"))...)
	if len(spec.CABundle) > 0 {
		switch {
		case spec.InsecureSkipTLSVerify:
			errs = append(errs, field.Invalid(at.Child("caBundle"), "", "caBundle cannot be used when insecureSkipTLSVerify is true"))
		case !x509.NewCertPool().AppendCertsFromPEM(spec.CABundle):
			errs = append(errs, field.Invalid(at.Child("caBundle"), "", "must contain CA certificates in PEM form"))
		}
	}
	switch duration := spec.RelistDuration; {
	case spec.RelistBehavior != v1beta1.RelistBehaviorDuration && spec.RelistBehavior != v1beta1.RelistBehaviorManual:
		errs = append(errs, field.NotSupported(at.Child("relistBehavior"), spec.RelistBehavior,
			[]v1beta1.RelistBehavior{v1beta1.RelistBehaviorDuration, v1beta1.RelistBehaviorManual}))
	case duration != nil && duration.Duration <= 0:
		errs = append(errs, field.Invalid(at.Child("relistDuration"), duration.Duration.String(), "must be greater than zero"))
	}
	if spec.RelistRequests < 0 {
		errs = append(errs, field.Invalid(at.Child("relistRequests"), spec.RelistRequests, "must not be negative"))
	}
	if old != nil && spec.RelistRequests < old.RelistRequests {
		errs = append(errs, field.Invalid(at.Child("relistRequests"), spec.RelistRequests,
			fmt.Sprintf("must not be less than its current value, %d", old.RelistRequests)))
	}
	if restrictions := spec.CatalogRestrictions; restrictions != nil {
		in := at.Child("catalogRestrictions")
		errs = append(errs, validateRequirements(restrictions.ServiceClass, classKeys, in.Child("serviceClass"))...)
		errs = append(errs, validateRequirements(restrictions.ServicePlan, planKeys, in.Child("servicePlan"))...)
	}
	return errs
}

func validateURL(text string, at *field.Path) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(at, "set the address of the broker, such as https://broker.example.com")}
	}
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return field.ErrorList{field.Invalid(at, text, "must be a URL such as https://broker.example.com")}
	case parsed.User != nil:
		return field.ErrorList{field.Invalid(at, parsed.Redacted(), "must not contain credentials: put them in a secret and name it in authInfo")}
	case parsed.RawQuery != "" || parsed.Fragment != "":
		return field.ErrorList{field.Invalid(at, text, "must have neither a query nor a fragment")}
	}
	return nil
}

func classRequirements() []string {
	return []string{"name", "spec.externalName", "spec.externalID", "spec.serviceBrokerName"}
}

func planRequirements() []string {
	return append(classRequirements(), "spec.serviceClass.name", "spec.free")
}

func clusterClassRequirements() []string {
	return []string{"name", "spec.externalName", "spec.externalID", "spec.clusterServiceBrokerName"}
}

func clusterPlanRequirements() []string {
	return append(clusterClassRequirements(), "spec.clusterServiceClass.name", "spec.free")
}

// validateRequirements checks catalog requirements, which have label selector syntax.
func validateRequirements(texts, keys []string, at *field.Path) (errs field.ErrorList) {
	for i, text := range texts {
		requirements, err := labels.ParseToRequirements(text)
		if err != nil {
			errs = append(errs, field.Invalid(at.Index(i), text, "must be a requirement such as: spec.externalName in (small, large)"))
		}
		for _, requirement := range requirements {
			if !slices.Contains(keys, requirement.Key()) {
				errs = append(errs, field.NotSupported(at.Index(i), requirement.Key(), keys))
			}
		}
	}
	return errs
}

func validateClusterAuth(auth *v1beta1.ClusterServiceBrokerAuthInfo, at *field.Path) (errs field.ErrorList) {
	check := func(config *v1beta1.ClusterAuthConfig, in *field.Path) {
		switch {
		case config == nil:
		case config.SecretRef == nil:
			errs = append(errs, field.Required(in.Child("secretRef"), "name the secret with the credentials"))
		default:
			errs = append(errs, validateName(config.SecretRef.Namespace, in.Child("secretRef", "namespace"))...)
			errs = append(errs, validateName(config.SecretRef.Name, in.Child("secretRef", "name"))...)
		}
	}
	check(auth.Basic, at.Child("basic"))
	check(auth.Bearer, at.Child("bearer"))
	return append(errs, validateOneAuth(auth.Basic != nil, auth.Bearer != nil, at)...)
}

func validateAuth(auth *v1beta1.ServiceBrokerAuthInfo, at *field.Path) (errs field.ErrorList) {
	check := func(config *v1beta1.AuthConfig, in *field.Path) {
		switch {
		case config == nil:
		case config.SecretRef == nil:
			errs = append(errs, field.Required(in.Child("secretRef"), "name the secret with the credentials"))
		default:
			errs = append(errs, validateName(config.SecretRef.Name, in.Child("secretRef", "name"))...)
		}
	}
	check(auth.Basic, at.Child("basic"))
	check(auth.Bearer, at.Child("bearer"))
	return append(errs, validateOneAuth(auth.Basic != nil, auth.Bearer != nil, at)...)
}

func validateOneAuth(basic, bearer bool, at *field.Path) field.ErrorList {
	if basic != bearer {
		return nil
	}
	return field.ErrorList{field.Required(at, "exactly one of basic and bearer must be set")}
}
