package ansible

import (
	"net/http"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// bind starts to create a binding. If the bundle has no playbook for bindings, the binding
// immediately receives the instance's credentials.
func (b *broker) bind(r *http.Request) (osbserver.Response, error) {
	rec, id, user, err := b.bindingRequest(r)
	if err != nil {
		return osbserver.Response{}, err
	}
	if err := rec.mustExist(r.PathValue("instance")); err != nil {
		return osbserver.Response{}, err
	}
	var body request
	if err := osbserver.Read(r, &body); err != nil {
		return osbserver.Response{}, err
	}
	values, err := b.bindValues(r, rec, body)
	if err != nil {
		return osbserver.Response{}, err
	}
	existing := rec.Bindings[id]
	switch {
	case existing != nil && existing.Failure == "" && !equal(existing.Values, values):
		return osbserver.Response{}, osbserver.Refuse(http.StatusConflict, "binding %q already exists with other parameters", id)
	case existing != nil && existing.Failure == "":
		return osbserver.Response{Code: http.StatusOK, Body: credentialsBody(existing)}, nil
	case rec.Bundle.Separate:
		if err := osbserver.Incomplete(r); err != nil {
			return osbserver.Response{}, err
		}
		return b.begin(r.Context(), rec, &operation{Action: bindAction, Binding: id, Bundle: rec.Bundle, Values: values, User: user})
	case rec.Operation != nil && rec.Operation.State == inProgress:
		return osbserver.Response{}, osbserver.Busy("instance %q has an operation in progress: %s", rec.ID, rec.Operation.Action)
	}
	created := &bindingRecord{Values: values, Credentials: rec.Credentials}
	rec.Bindings[id] = created
	return osbserver.Response{Code: http.StatusCreated, Body: credentialsBody(created)}, b.store(r.Context(), rec)
}

func credentialsBody(binding *bindingRecord) any {
	return map[string]any{"credentials": binding.Credentials, "parameters": binding.Values}
}

// bindingRequest returns the instance's record, the ID of the binding, and the name of the
// request's originator. The record is nil if the instance does not exist.
func (b *broker) bindingRequest(r *http.Request) (rec *record, id, user string, err error) {
	instance, err := osbserver.ID(r, "instance")
	if err != nil {
		return nil, "", "", err
	}
	if id, err = osbserver.ID(r, "binding"); err != nil {
		return nil, "", "", err
	}
	if rec, err = b.load(r.Context(), instance); err != nil || rec == nil {
		return nil, id, "", err
	}
	user, err = b.permitted(r, rec.Namespace)
	return rec, id, user, err
}

// bindValues returns a binding's parameters. If the bundle is no longer offered, bindValues cannot
// check the parameters. In this case, it rejects all parameters if the bundle uses secrets.
// Otherwise, an unchecked parameter could override any variable and make Ansible disclose the
// secrets.
func (b *broker) bindValues(r *http.Request, rec *record, body request) (map[string]any, error) {
	bundle, err := b.bundle(r.Context(), rec.Service)
	if err != nil {
		return nil, err
	}
	if bundle != nil && !bundle.Spec.Bindable {
		return nil, osbserver.Refuse(http.StatusBadRequest, "bundle %q is not bindable", bundle.Spec.Name)
	}
	if bundle != nil {
		if plan := bundle.plan(rec.Plan); plan != nil {
			return complete(plan.BindParameters, body.Parameters)
		}
	}
	if len(body.Parameters) > 0 && len(b.secretsOf(rec.Bundle.Stream)) > 0 {
		return nil, osbserver.Refuse(http.StatusBadRequest, "parameters: cannot be checked, because service %q is no longer offered; omit them", rec.Service)
	}
	return body.Parameters, nil
}

// readBinding returns a binding's credentials.
func (b *broker) readBinding(r *http.Request) (osbserver.Response, error) {
	rec, id, _, err := b.bindingRequest(r)
	if err != nil {
		return osbserver.Response{}, err
	}
	if rec == nil || rec.Bindings[id] == nil || rec.Bindings[id].Failure != "" {
		return osbserver.Response{}, osbserver.Refuse(http.StatusNotFound, "binding %q does not exist", id)
	}
	return osbserver.Response{Code: http.StatusOK, Body: credentialsBody(rec.Bindings[id])}, nil
}

// unbind starts to delete a binding.
func (b *broker) unbind(r *http.Request) (osbserver.Response, error) {
	rec, id, user, err := b.bindingRequest(r)
	if err != nil {
		return osbserver.Response{}, err
	}
	if rec == nil || rec.Bindings[id] == nil && !rec.binds(id) {
		return osbserver.Response{Code: http.StatusGone, Body: osbserver.Empty{}}, nil
	}
	if rec.Bundle.Separate {
		if err := osbserver.Incomplete(r); err != nil {
			return osbserver.Response{}, err
		}
		return b.begin(r.Context(), rec, &operation{Action: unbindAction, Binding: id, Bundle: rec.Bundle, User: user})
	}
	delete(rec.Bindings, id)
	return osbserver.Response{Code: http.StatusOK, Body: osbserver.Empty{}}, b.store(r.Context(), rec)
}

// binds reports whether an operation is creating the given binding.
func (rec *record) binds(id string) bool {
	op := rec.Operation
	return op != nil && op.State == inProgress && op.Action == bindAction && op.Binding == id
}
