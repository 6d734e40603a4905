package ansible

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// request is the body of a request for an instance or a binding.
type request struct {
	ServiceID string `json:"service_id"`
	PlanID    string `json:"plan_id"`
	Context   struct {
		Platform  string `json:"platform"`
		Namespace string `json:"namespace"`
	} `json:"context"`
	Parameters map[string]any `json:"parameters"`
}

// provision starts to create an instance.
func (b *broker) provision(r *http.Request) (osbserver.Response, error) {
	id, body, err := readRequest(r)
	if err != nil {
		return osbserver.Response{}, err
	}
	if err := body.validate(); err != nil {
		return osbserver.Response{}, err
	}
	source, values, err := b.order(r, body)
	if err != nil {
		return osbserver.Response{}, err
	}
	user, err := b.permitted(r, body.Context.Namespace)
	if err != nil {
		return osbserver.Response{}, err
	}
	rec, err := b.load(r.Context(), id)
	switch {
	case err != nil:
		return osbserver.Response{}, err
	case rec == nil:
		rec = &record{ID: id, Service: body.ServiceID, Plan: body.PlanID, Namespace: body.Context.Namespace, Bundle: source, Values: values, Bindings: map[string]*bindingRecord{}}
	case rec.Service != body.ServiceID || rec.Plan != body.PlanID || rec.Namespace != body.Context.Namespace || !equal(rec.Values, values):
		return osbserver.Response{}, osbserver.Refuse(http.StatusConflict, "instance %q already exists with another service, plan or project, or with other parameters", id)
	case rec.Provisioned:
		return osbserver.Response{Code: http.StatusOK, Body: osbserver.Empty{}}, nil
	}
	return b.begin(r.Context(), rec, &operation{Action: provisionAction, Plan: body.PlanID, Bundle: source, Values: values, User: user})
}

func readRequest(r *http.Request) (id string, body request, err error) {
	if id, err = osbserver.ID(r, "instance"); err == nil {
		err = osbserver.Incomplete(r)
	}
	if err == nil {
		err = osbserver.Read(r, &body)
	}
	return id, body, err
}

func (r *request) validate() error {
	if r.Context.Platform != osbserver.Platform {
		return osbserver.Refuse(http.StatusBadRequest, "context.platform is %q, must be %s", r.Context.Platform, osbserver.Platform)
	}
	if errs := validation.ValidateNamespaceName(r.Context.Namespace, false); len(errs) > 0 {
		return osbserver.Refuse(http.StatusBadRequest, "context.namespace %q: %s", r.Context.Namespace, strings.Join(errs, "; "))
	}
	return nil
}

// order returns the bundle and the parameters that a provisioning request specifies.
func (b *broker) order(r *http.Request, body request) (source, map[string]any, error) {
	bundle, err := b.bundle(r.Context(), body.ServiceID)
	if err != nil {
		return source{}, nil, err
	}
	if bundle == nil {
		return source{}, nil, osbserver.Refuse(http.StatusBadRequest, "service %q does not exist", body.ServiceID)
	}
	plan := bundle.plan(body.PlanID)
	if plan == nil {
		return source{}, nil, osbserver.Refuse(http.StatusBadRequest, "service %q has no plan %q", body.ServiceID, body.PlanID)
	}
	values, err := complete(plan.Parameters, body.Parameters)
	return bundle.source(plan), values, err
}

func (b *bundle) source(plan *plan) source {
	return source{Namespace: b.Namespace, Stream: b.Stream, Image: b.Image, Name: b.Spec.Name, PlanName: plan.Name, Separate: b.Spec.separate(), Runtime: b.Spec.Runtime}
}

// permitted returns the name of the request's originator. It returns an error if the originator
// lacks any of the bundle's permissions in a project. In a project that is being deleted, no
// permissions are required, because users might have already lost their roles, and bundles only
// delete instances there.
func (b *broker) permitted(r *http.Request, project string) (name string, err error) {
	user, err := osbserver.Originator(r, b.authorizer)
	if err != nil {
		return "", err
	}
	if terminating, err := b.terminates(r.Context(), project); terminating || err != nil {
		return user.GetName(), err
	}
	return user.GetName(), b.mayRun(r.Context(), user, project)
}

// existing returns an instance's record, or an error if the instance does not exist.
func (b *broker) existing(r *http.Request, id string) (*record, error) {
	rec, err := b.load(r.Context(), id)
	if err == nil {
		err = rec.mustExist(id)
	}
	return rec, err
}

// mustExist returns an error if the instance does not exist or is still being created. rec is nil
// if the instance has no record.
func (rec *record) mustExist(id string) error {
	switch {
	case rec == nil || !rec.Provisioned && (rec.Operation == nil || rec.Operation.State != inProgress):
		return osbserver.Refuse(http.StatusBadRequest, "instance %q does not exist or is not provisioned", id)
	case !rec.Provisioned:
		return osbserver.Busy("instance %q has an operation in progress: %s", id, rec.Operation.Action)
	}
	return nil
}

// update starts to change an instance's plan or parameters.
func (b *broker) update(r *http.Request) (osbserver.Response, error) {
	id, body, err := readRequest(r)
	if err != nil {
		return osbserver.Response{}, err
	}
	rec, err := b.existing(r, id)
	if err != nil {
		return osbserver.Response{}, err
	}
	user, err := b.permitted(r, rec.Namespace)
	if err != nil {
		return osbserver.Response{}, err
	}
	if body.PlanID == "" {
		body.PlanID = rec.Plan
	}
	bundle, err := b.bundle(r.Context(), rec.Service)
	if err != nil {
		return osbserver.Response{}, err
	}
	if bundle == nil {
		return osbserver.Response{}, osbserver.Refuse(http.StatusBadRequest, "service %q is no longer offered", rec.Service)
	}
	plan, values, err := bundle.change(rec, body)
	if err != nil {
		return osbserver.Response{}, err
	}
	if body.PlanID == rec.Plan && equal(values, rec.Values) && (rec.Operation == nil || rec.Operation.State != inProgress) {
		return osbserver.Response{Code: http.StatusOK, Body: osbserver.Empty{}}, nil
	}
	return b.begin(r.Context(), rec, &operation{Action: updateAction, Plan: body.PlanID, Bundle: bundle.source(plan), Values: values, User: user})
}

// readInstance returns an instance with the URL of its dashboard.
func (b *broker) readInstance(r *http.Request) (osbserver.Response, error) {
	id, err := osbserver.ID(r, "instance")
	if err != nil {
		return osbserver.Response{}, err
	}
	rec, err := b.load(r.Context(), id)
	if err != nil {
		return osbserver.Response{}, err
	}
	if rec == nil || !rec.Provisioned {
		return osbserver.Response{}, osbserver.Refuse(http.StatusNotFound, "instance %q does not exist or is not provisioned", id)
	}
	body := map[string]string{"service_id": rec.Service, "plan_id": rec.Plan}
	if rec.Dashboard != "" {
		body["dashboard_url"] = rec.Dashboard
	}
	return osbserver.Response{Code: http.StatusOK, Body: body}, nil
}

// change returns the plan and the parameters that result from an update request.
func (b *bundle) change(rec *record, body request) (*plan, map[string]any, error) {
	target, current := b.plan(body.PlanID), b.plan(rec.Plan)
	switch {
	case target == nil || current == nil:
		return nil, nil, osbserver.Refuse(http.StatusBadRequest, "service %q has no plan %q", rec.Service, body.PlanID)
	case target != current && !slices.Contains(current.UpdatesTo, target.Name):
		return nil, nil, osbserver.Refuse(http.StatusBadRequest, "plan %q cannot be changed to plan %q", current.Name, target.Name)
	}
	merged := map[string]any{}
	for _, p := range target.Parameters {
		old, existed := rec.Values[p.Name]
		value, ok := body.Parameters[p.Name]
		switch {
		case !ok && existed:
			merged[p.Name] = old
		case ok && existed && !p.Updatable && !equal(map[string]any{"": old}, map[string]any{"": value}):
			return nil, nil, osbserver.Refuse(http.StatusBadRequest, "parameters.%s: cannot be changed", p.Name)
		case ok:
			merged[p.Name] = value
		}
	}
	for name, value := range body.Parameters {
		merged[name] = value // complete rejects parameters that the plan does not define
	}
	values, err := complete(target.Parameters, merged)
	return target, values, err
}

// deprovision starts to delete an instance. If the instance's bundle is no longer offered, the
// image that created the instance deletes it.
func (b *broker) deprovision(r *http.Request) (osbserver.Response, error) {
	id, err := osbserver.ID(r, "instance")
	if err == nil {
		err = osbserver.Incomplete(r)
	}
	if err != nil {
		return osbserver.Response{}, err
	}
	rec, err := b.load(r.Context(), id)
	if err != nil {
		return osbserver.Response{}, err
	}
	if rec == nil {
		return osbserver.Response{Code: http.StatusGone, Body: osbserver.Empty{}}, nil
	}
	user, err := b.permitted(r, rec.Namespace)
	if err != nil {
		return osbserver.Response{}, err
	}
	return b.begin(r.Context(), rec, &operation{Action: deprovisionAction, Plan: rec.Plan, Bundle: rec.Bundle, Values: rec.Values, User: user})
}
