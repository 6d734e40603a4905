package servicecatalog

import (
	"context"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/singlepath"
)

func bindings() apiserver.Served {
	type binding = *v1beta1.ServiceBinding
	return apiserver.Resource[binding]{
		Plural: "servicebindings", Namespaced: true, Status: true,
		Default: func(b binding) {
			if b.Status.Conditions == nil {
				b.Status.Conditions = []metav1.Condition{}
			}
		},
		Prepare: prepareBinding, Validate: validateBinding,
		Adjust: recordDeleter(func(b binding) **authenticationv1.UserInfo { return &b.Spec.UserInfo }),
		Warn: func(b, old binding) []string {
			return warnAbandon(b, old != nil && old.Annotations[v1beta1.AbandonAnnotation] == "true")
		},
		Fields: map[string]func(binding) string{
			"spec.externalID":       func(b binding) string { return b.Spec.ExternalID },
			"spec.instanceRef.name": func(b binding) string { return b.Spec.InstanceRef.Name },
		},
		Columns: []apiserver.Column[binding]{
			{Name: "Service-Instance", Description: "Instance of the binding", Value: func(b binding) any { return b.Spec.InstanceRef.Name }},
			{Name: "Secret-Name", Description: "Secret with the credentials", Value: func(b binding) any { return b.Spec.SecretName }},
			{Name: "Status", Description: "State of the binding", Value: func(b binding) any { return b.Status.LastConditionState }},
			apiserver.Age[binding](),
		},
	}
}

// prepareBinding sets defaults and the user info, which clients cannot set.
func prepareBinding(ctx context.Context, binding, old *v1beta1.ServiceBinding) {
	spec := &binding.Spec
	if old != nil {
		spec.UserInfo = old.Spec.UserInfo
		if spec.ExternalID == "" {
			spec.ExternalID = old.Spec.ExternalID
		}
		if spec.SecretName == "" {
			spec.SecretName = old.Spec.SecretName
		}
		return
	}
	addFinalizer(binding)
	if spec.ExternalID == "" {
		spec.ExternalID = uuid.NewString()
	}
	if spec.SecretName == "" {
		spec.SecretName = binding.Name
	}
	spec.UserInfo = requester(ctx)
	binding.Status.UnbindStatus = v1beta1.DeletionNotRequired
}

func validateBinding(_ context.Context, binding, old *v1beta1.ServiceBinding) (errs field.ErrorList) {
	at := field.NewPath("spec")
	errs = append(errs, validateName(binding.Spec.InstanceRef.Name, at.Child("instanceRef", "name"))...)
	errs = append(errs, validateName(binding.Spec.SecretName, at.Child("secretName"))...)
	errs = append(errs, validateParameters(binding.Spec.Parameters, binding.Spec.ParametersFrom, at)...)
	errs = append(errs, validateExternalID(binding.Spec.ExternalID, at.Child("externalID"))...)
	if count := len(binding.Spec.SecretTransforms); count > maxSources {
		errs = append(errs, field.TooMany(at.Child("secretTransforms"), count, maxSources))
	}
	for i := range binding.Spec.SecretTransforms {
		errs = append(errs, validateTransform(&binding.Spec.SecretTransforms[i], binding.Namespace, at.Child("secretTransforms").Index(i))...)
	}
	if old != nil {
		errs = append(errs, immutable(binding.Spec, old.Spec, at)...)
	}
	return errs
}

func validateTransform(transform *v1beta1.SecretTransform, namespace string, at *field.Path) (errs field.ErrorList) {
	count := 0
	if rename := transform.RenameKey; rename != nil {
		count++
		if rename.From == "" || rename.To == "" {
			errs = append(errs, field.Required(at.Child("renameKey"), "set from and to"))
		}
	}
	if add := transform.AddKey; add != nil {
		count++
		errs = append(errs, validateAddKey(add, at.Child("addKey"))...)
	}
	if from := transform.AddKeysFrom; from != nil {
		count++
		switch {
		case from.SecretRef == nil || from.SecretRef.Name == "":
			errs = append(errs, field.Required(at.Child("addKeysFrom", "secretRef", "name"), "name the secret"))
		case from.SecretRef.Namespace != "" && from.SecretRef.Namespace != namespace:
			errs = append(errs, field.Forbidden(at.Child("addKeysFrom", "secretRef", "namespace"), "must be the namespace of the binding"))
		}
	}
	if remove := transform.RemoveKey; remove != nil {
		count++
		if remove.Key == "" {
			errs = append(errs, field.Required(at.Child("removeKey", "key"), "name the key"))
		}
	}
	if count != 1 {
		errs = append(errs, field.Required(at, "exactly one of renameKey, addKey, addKeysFrom and removeKey must be set"))
	}
	return errs
}

func validateAddKey(add *v1beta1.AddKeyTransform, at *field.Path) (errs field.ErrorList) {
	if add.JSONPathExpression != nil {
		if _, err := singlepath.Parse("credentials", *add.JSONPathExpression); err != nil {
			errs = append(errs, field.Invalid(at.Child("jsonPathExpression"), *add.JSONPathExpression, err.Error()))
		}
	}
	if add.Key == "" {
		errs = append(errs, field.Required(at.Child("key"), "name the key"))
	}
	count := 0
	for _, isSet := range []bool{len(add.Value) > 0, add.StringValue != nil, add.JSONPathExpression != nil} {
		if isSet {
			count++
		}
	}
	if count != 1 {
		errs = append(errs, field.Required(at, "exactly one of value, stringValue and jsonPathExpression must be set"))
	}
	return errs
}
