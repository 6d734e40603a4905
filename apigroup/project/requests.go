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
)

// defaultMessage is what someone reads who may not request projects, where none is configured.
const defaultMessage = "You may not request a new project via this API."

// requests is the resource projectrequests: to create one makes a project of a template for the user, and to list them tells whether the
// user may.
type requests struct {
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

// New makes an empty request.
func (r *requests) New() runtime.Object { return &projectv1.ProjectRequest{} }

// NewList makes an empty answer.
func (r *requests) NewList() runtime.Object { return &metav1.Status{} }

// Destroy has nothing to give back.
func (r *requests) Destroy() {}

// NamespaceScoped says that requests are of the cluster.
func (r *requests) NamespaceScoped() bool { return false }

// GetSingularName is the name of one.
func (r *requests) GetSingularName() string { return "projectrequest" }

// List tells whether the user may request projects; the refusal has the configured message.
func (r *requests) List(ctx context.Context, _ *internalversion.ListOptions) (runtime.Object, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errNoUser
	}
	decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: "create", APIGroup: projectv1.GroupName, APIVersion: projectv1.GroupVersion.Version,
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

// Create makes the project that is asked for.
func (r *requests) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked := object.(*projectv1.ProjectRequest)
	if errs := validateRequest(asked); len(errs) > 0 {
		return nil, apierrors.NewInvalid(projectv1.GroupVersion.WithKind("ProjectRequest").GroupKind(), asked.Name, errs)
	}
	if validate != nil {
		if err := validate(ctx, asked.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if _, err := r.observer.namespaces.Get(asked.Name); err == nil {
		return nil, apierrors.NewAlreadyExists(projectv1.Resource("projects"), asked.Name)
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errNoUser
	}
	objects, err := r.expand(ctx, asked, who.GetName())
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if len(options.DryRun) > 0 {
		return &projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: asked.Name}}, nil
	}
	if err := r.make(ctx, asked.Name, objects); err != nil {
		return nil, err
	}
	return r.settled(ctx, asked.Name, who), nil
}

// validateRequest gives the problems of a request. Names of the platform's own projects cannot be requested.
func validateRequest(asked *projectv1.ProjectRequest) field.ErrorList {
	project := &projectv1.Project{ObjectMeta: *asked.ObjectMeta.DeepCopy()}
	project.Annotations = map[string]string{displayNameAnnotation: asked.DisplayName}
	errs := validate(project)
	if reserved(asked.Name) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf("cannot request a project with the reserved name %q", asked.Name)))
	}
	return errs
}

// reserved tells whether a name is the platform's: one of its projects has or may get it, or it reads like one of the
// platform's users and groups, whose names begin with `system:`.
func reserved(name string) bool {
	if slices.Contains([]string{"default", "openshift", "kube", "kubernetes", "system", "slipway"}, name) {
		return true
	}
	return slices.ContainsFunc([]string{"openshift-", "kube-", "kubernetes-", "system-", "slipway-"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// expand makes the objects of the configured template.
func (r *requests) expand(ctx context.Context, asked *projectv1.ProjectRequest, who string) ([]*unstructured.Unstructured, error) {
	template, err := standard.Template()
	if err != nil {
		return nil, err
	}
	wanted := r.settings.now().RequestTemplate
	if namespace, name, ok := strings.Cut(wanted, "/"); ok {
		found, err := r.objects.get(ctx, templatev1.GroupVersion.WithResource("templates"), namespace, name)
		if err != nil {
			return nil, fmt.Errorf("read projectConfig.projectRequestTemplate %q: %w", wanted, err)
		}
		template = &templatev1.Template{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, template); err != nil {
			return nil, fmt.Errorf("read projectConfig.projectRequestTemplate %q: %w", wanted, err)
		}
	}
	objects, err := expand(template, map[string]string{
		standard.ProjectParameter: asked.Name, standard.DisplayNameParameter: asked.DisplayName, standard.DescriptionParameter: asked.Description,
		standard.AdminParameter: who, standard.RequesterParameter: who,
	})
	if err != nil {
		return nil, err
	}
	count := 0
	for _, object := range objects {
		if isProject(object) {
			count++
			if object.GetName() != asked.Name {
				return nil, fmt.Errorf("the template makes the project %q instead of %q", object.GetName(), asked.Name)
			}
		}
	}
	if count != 1 {
		return nil, fmt.Errorf("the template makes %d projects, must make one", count)
	}
	return objects, nil
}

func isProject(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Kind == "Project" && (kind.Group == projectv1.GroupName || kind.Group == "")
}

// make makes the project and what else the template has. A project that cannot be completed is removed again.
func (r *requests) make(ctx context.Context, name string, objects []*unstructured.Unstructured) error {
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
				return apierrors.NewInternalError(fmt.Errorf("make %s %q of the project's template: %w", object.GetKind(), object.GetName(), err))
			}
			return err
		}
	}
	return nil
}

// settled waits until the user sees the project, because the next thing that anybody does is to use it. It returns the project.
func (r *requests) settled(ctx context.Context, name string, who user.Info) runtime.Object {
	made := &projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_ = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		namespace, err := r.observer.namespaces.Get(name)
		if err != nil {
			return false, nil
		}
		made = fromNamespace(namespace)
		decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: "get", APIVersion: "v1", Resource: "namespaces", Namespace: name, Name: name, ResourceRequest: true,
		})
		return err == nil && decision == authorizer.DecisionAllow, nil
	})
	return made
}
