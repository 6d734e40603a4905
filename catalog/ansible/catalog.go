package ansible

import (
	"context"
	"errors"
	"net/http"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// catalog returns the bundles as services. It omits images without a valid specification. The
// errors in these specifications are in the response of bootstrap.
func (b *broker) catalog(r *http.Request) (osbserver.Response, error) {
	bundles, _, _, err := b.bundles(r.Context())
	if err != nil {
		return osbserver.Response{}, err
	}
	services := make([]any, 0, len(bundles))
	names := map[string]bool{}
	for i := range bundles {
		name := bundles[i].Spec.Name
		if names[name] { // platforms reject a catalog with duplicate names
			name = bundles[i].Namespace + "." + bundles[i].Stream + "." + name
		}
		names[name] = true
		services = append(services, serviceOf(&bundles[i], name))
	}
	return osbserver.Response{Code: http.StatusOK, Body: map[string]any{"services": services}}, nil
}

func serviceOf(b *bundle, name string) map[string]any {
	spec := &b.Spec
	plans, updatable := make([]any, 0, len(spec.Plans)), false
	for i := range spec.Plans {
		plans = append(plans, planOf(b, &spec.Plans[i]))
		updatable = updatable || len(spec.Plans[i].UpdatesTo) > 0 || len(updatableOf(&spec.Plans[i])) > 0
	}
	description := spec.Description
	if description == "" {
		description = "No description provided."
	}
	return map[string]any{
		"id": b.id(), "name": name, "description": description, "tags": spec.Tags, "metadata": spec.Metadata, "bindable": spec.Bindable, "instances_retrievable": true,
		"bindings_retrievable": spec.separate(), "plan_updateable": updatable, "plans": plans,
	}
}

func planOf(b *bundle, p *plan) map[string]any {
	metadata := map[string]any{}
	for key, value := range p.Metadata {
		metadata[key] = value
	}
	form := func(parameters []parameter) map[string]any {
		return map[string]any{"openshift_form_definition": formOf(parameters)}
	}
	schema := func(parameters []parameter) map[string]any { return map[string]any{"parameters": schemaOf(parameters)} }
	metadata["schemas"] = map[string]any{
		"service_instance": map[string]any{"create": form(p.Parameters), "update": form(updatableOf(p))},
		"service_binding":  map[string]any{"create": form(p.BindParameters)},
	}
	description := p.Description
	if description == "" {
		description = "No description provided."
	}
	return map[string]any{
		"id": b.planID(p.Name), "name": p.Name, "description": description, "free": p.Free, "bindable": b.Spec.Bindable, "metadata": metadata,
		"schemas": map[string]any{
			"service_instance": map[string]any{"create": schema(p.Parameters), "update": schema(updatableOf(p))},
			"service_binding":  map[string]any{"create": schema(p.BindParameters)},
		},
	}
}

// updatableOf returns the parameters that an update can change.
func updatableOf(p *plan) (parameters []parameter) {
	for _, parameter := range p.Parameters {
		if parameter.Updatable {
			parameters = append(parameters, parameter)
		}
	}
	return parameters
}

// bootstrap imports new images from other registries, and reads all images. It returns the number
// of bundles, the number of images, and the reasons why images are not valid bundles.
func (b *broker) bootstrap(r *http.Request) (osbserver.Response, error) {
	failures := b.importRegistries(r.Context())
	bundles, images, rejected, err := b.bundles(r.Context())
	if err != nil {
		return osbserver.Response{}, err
	}
	rejected = errors.Join(failures, rejected)
	body := map[string]any{"spec_count": len(bundles), "image_count": images}
	if rejected != nil {
		body["rejected"] = rejected.Error()
	}
	return osbserver.Response{Code: http.StatusOK, Body: body}, nil
}

// bundle returns the offered bundle with the given ID, or nil.
func (b *broker) bundle(ctx context.Context, id string) (*bundle, error) {
	bundles, _, _, err := b.bundles(ctx)
	if err != nil {
		return nil, err
	}
	for i := range bundles {
		if bundles[i].id() == id {
			return &bundles[i], nil
		}
	}
	return nil, nil
}
