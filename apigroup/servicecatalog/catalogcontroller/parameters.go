package catalogcontroller

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/internal/yamllimit"
)

// parameters contains the parameters of a request.
type parameters struct {
	// values contains all parameters, including secret ones.
	values map[string]any
	// public contains the parameters for the status, with secret values redacted.
	public *runtime.RawExtension
	// checksum is a keyed hash of the values. The key prevents the checksum from being used to
	// guess secrets.
	checksum string
}

// redacted replaces the values of secret parameters in the status.
const redacted = "<redacted>"

// Limits on parameters from secrets: the total size of all secrets in bytes, and the number of
// values in one secret.
const maxParameters, maxParameterValues = 1 << 20, 10_000

// parameters reads an instance's or binding's parameters. defaults contains values for parameters
// that the user does not set.
func (r *reconciler) parameters(ctx context.Context, namespace string, inline *runtime.RawExtension,
	from []v1beta1.ParametersFromSource, defaults map[string]any) (parameters, error) {
	values, public := maps.Clone(defaults), maps.Clone(defaults)
	if values == nil {
		values, public = map[string]any{}, map[string]any{}
	}
	fail := func(format string, values ...any) (parameters, error) {
		return parameters{}, waiting("ErrorWithParameters", "Error building parameters: "+format, values...)
	}
	sources := map[string]string{}
	own, err := object(inline)
	if err != nil {
		return fail("spec.parameters is not an object")
	}
	for name, value := range own {
		values[name], public[name], sources[name] = value, value, "spec.parameters"
	}
	size := 0
	for _, source := range from {
		if source.SecretKeyRef == nil {
			continue
		}
		reference := source.SecretKeyRef
		secret, err := r.kube.CoreV1().Secrets(namespace).Get(ctx, reference.Name, metav1.GetOptions{})
		if err != nil {
			return fail("%s", err)
		}
		text, ok := secret.Data[reference.Key]
		if !ok {
			return fail("secret %q has no key %q", reference.Name, reference.Key)
		}
		if size += len(text); size > maxParameters {
			return fail("the secrets of spec.parametersFrom have more than %d bytes", maxParameters)
		}
		var secretValues map[string]any
		if yamllimit.Check(text, maxParameterValues, maxParameters) != nil {
			return fail("the value of key %q in secret %q is not a JSON or YAML object, or has more than %d values or %d bytes",
				reference.Key, reference.Name, maxParameterValues, maxParameters)
		}
		if err := yaml.Unmarshal(text, &secretValues); err != nil { // the error can contain the secret
			return fail("the value of key %q in secret %q is not a JSON or YAML object", reference.Key, reference.Name)
		}
		at := fmt.Sprintf("secret %q", reference.Name)
		for name, value := range secretValues {
			if other, exists := sources[name]; exists {
				return fail("parameter %q is in %s and in %s", name, other, at)
			}
			values[name], public[name], sources[name] = value, redacted, at
		}
	}
	return r.seal(values, public)
}

func (r *reconciler) seal(values, public map[string]any) (parameters, error) {
	if len(values) == 0 {
		return parameters{}, nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		return parameters{}, fmt.Errorf("encode parameters: %w", err)
	}
	shown, err := json.Marshal(public)
	if err != nil {
		return parameters{}, fmt.Errorf("encode parameters: %w", err)
	}
	mac := hmac.New(sha256.New, r.secret)
	mac.Write(text)
	return parameters{values, &runtime.RawExtension{Raw: shown}, hex.EncodeToString(mac.Sum(nil))}, nil
}

// object decodes a JSON object. It returns nil if raw is empty.
func object(raw *runtime.RawExtension) (values map[string]any, err error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	err = json.Unmarshal(raw.Raw, &values)
	return values, err
}

// defaultParameters merges the default parameters of the class and the plan.
func defaultParameters(o *offer) (values map[string]any, merged *runtime.RawExtension, err error) {
	for _, raw := range []*runtime.RawExtension{o.class.DefaultProvisionParameters, o.plan.DefaultProvisionParameters} {
		more, err := object(raw)
		if err != nil {
			return nil, nil, waiting("ErrorWithParameters", "Error building parameters: the defaults of %s are not an object", o)
		}
		if values == nil {
			values = more
			continue
		}
		maps.Copy(values, more)
	}
	if len(values) == 0 {
		return nil, nil, nil
	}
	text, err := json.Marshal(values)
	return values, &runtime.RawExtension{Raw: text}, err
}
