package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	projectv1 "github.com/openshift/api/project/v1"
	templatev1 "github.com/openshift/api/template/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/project/standard"
	"github.com/slipway-platform/slipway/apiserver"
)

// defaultMessage is the message for users who are not allowed to request projects, unless another
// message is configured.
const defaultMessage = "You may not request a new project via this API."

// requests is the projectrequests resource. Creating a request creates a project for the user from
// a template. Listing requests reports whether the user is allowed to request a project.
type requests struct {
	apiserver.Unstored[*projectv1.ProjectRequest]
	rest.TableConvertor
	settings   *Settings
	authorizer authorizer.Authorizer
	objects    *writer
	observer   *observer
}

var (
	_ rest.Creater = &requests{}
	_ rest.Lister  = &requests{}
)

// NewList creates an empty status.
func (r *requests) NewList() runtime.Object { return &metav1.Status{} }

// List succeeds if the user is allowed to request projects. Otherwise, it returns the configured
// message as an error.
func (r *requests) List(ctx context.Context, _ *internalversion.ListOptions) (runtime.Object, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errNoUser
	}
	decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: "create", APIGroup: projectv1.GroupName, APIVersion: projectv1.GroupVersion.Version,
		Resource: "projectrequests", ResourceRequest: true,
	})
	if err == nil && decision == authorizer.DecisionAllow {
		return &metav1.Status{Status: metav1.StatusSuccess}, nil
	}
	message := r.settings.now().RequestMessage
	if message == "" {
		message = defaultMessage
	}
	refusal := apierrors.NewForbidden(projectv1.Resource("projectrequests"), "", errors.New(message))
	refusal.ErrStatus.Message = message
	refusal.ErrStatus.Details = nil
	return nil, refusal
}

// Create creates the requested project.
func (r *requests) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	req := object.(*projectv1.ProjectRequest)
	if errs := validateRequest(req, r.settings.now().Domains); len(errs) > 0 {
		return nil, apierrors.NewInvalid(projectv1.GroupVersion.WithKind("ProjectRequest").GroupKind(), req.Name, errs)
	}
	if validate != nil {
		if err := validate(ctx, req.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if _, err := r.observer.namespaces.Get(req.Name); err == nil {
		return nil, apierrors.NewAlreadyExists(projectv1.Resource("projects"), req.Name)
	}
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errNoUser
	}
	objects, err := r.expand(ctx, req, u.GetName())
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if len(options.DryRun) > 0 {
		return &projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: req.Name}}, nil
	}
	if err := r.createAll(ctx, req.Name, objects); err != nil {
		return nil, err
	}
	return r.waitVisible(ctx, req.Name, u), nil
}

// validateRequest validates a project request. Users cannot request projects with reserved names.
// See inCluster for domains.
func validateRequest(req *projectv1.ProjectRequest, domains []string) field.ErrorList {
	project := &projectv1.Project{ObjectMeta: *req.ObjectMeta.DeepCopy()}
	project.Annotations = map[string]string{displayNameAnnotation: req.DisplayName}
	errs := validate(project)
	if reserved(req.Name) || inCluster(req.Name, domains) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("cannot request a project with the reserved name %q", req.Name)))
	}
	return errs
}

// expand returns the objects of the configured template for a project request.
func (r *requests) expand(ctx context.Context, req *projectv1.ProjectRequest,
	requester string) ([]*unstructured.Unstructured, error) {
	template, err := standard.Template()
	if err != nil {
		return nil, err
	}
	reference := r.settings.now().RequestTemplate
	if namespace, name, ok := strings.Cut(reference, "/"); ok {
		object, err := r.objects.get(ctx, templatev1.GroupVersion.WithResource("templates"), namespace, name)
		if err != nil {
			return nil, fmt.Errorf("read projectConfig.projectRequestTemplate %q: %w", reference, err)
		}
		template = &templatev1.Template{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, template); err != nil {
			return nil, fmt.Errorf("read projectConfig.projectRequestTemplate %q: %w", reference, err)
		}
	}
	objects, err := expand(template, map[string]string{
		standard.ProjectParameter: req.Name, standard.DisplayNameParameter: req.DisplayName, standard.DescriptionParameter: req.Description,
		standard.AdminParameter: requester, standard.RequesterParameter: requester,
	})
	if err != nil {
		return nil, err
	}
	count := 0
	for _, object := range objects {
		if isProject(object) {
			count++
			if object.GetName() != req.Name {
				return nil, fmt.Errorf("the template creates the project %q instead of %q", object.GetName(), req.Name)
			}
		}
	}
	if count != 1 {
		return nil, fmt.Errorf("the template creates %d projects, must create one", count)
	}
	return objects, nil
}

func isProject(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Kind == "Project" && (kind.Group == projectv1.GroupName || kind.Group == "")
}

// createAll creates the project, and then the other objects of the template. If any of these
// objects cannot be created, it deletes the project.
func (r *requests) createAll(ctx context.Context, name string, objects []*unstructured.Unstructured) error {
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		switch {
		case isProject(a) && !isProject(b):
			return -1
		case isProject(b) && !isProject(a):
			return 1
		}
		return 0
	})
	for i, object := range objects {
		if isProject(object) {
			object.SetAPIVersion(projectv1.GroupVersion.String())
		}
		if err := r.objects.create(ctx, name, object); err != nil {
			if i > 0 {
				background := context.WithoutCancel(ctx)
				err = errors.Join(err, r.objects.remove(background, projectv1.GroupVersion.WithResource("projects"), name))
				return apierrors.NewInternalError(fmt.Errorf("create %s %q of the project's template: %w", object.GetKind(), object.GetName(), err))
			}
			return err
		}
	}
	return nil
}

// waitVisible waits up to 10 seconds for the project to become visible to the user, because clients
// use the project immediately. It returns the project.
func (r *requests) waitVisible(ctx context.Context, name string, u user.Info) runtime.Object {
	project := &projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_ = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		namespace, err := r.observer.namespaces.Get(name)
		if err != nil {
			return false, nil
		}
		project = fromNamespace(namespace)
		decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: u, Verb: "get", APIVersion: "v1", Resource: "namespaces", Namespace: name, Name: name, ResourceRequest: true,
		})
		return err == nil && decision == authorizer.DecisionAllow, nil
	})
	return project
}
