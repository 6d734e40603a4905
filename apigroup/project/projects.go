package project

import (
	"context"
	"slices"
	"strconv"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// projects is the projects resource: the namespaces visible to a user. A change to a project is
// authorized in the project. It is then sent as a change to its namespace through the API server,
// so that namespace admission also applies.
type projects struct {
	apiserver.Unstored[*projectv1.Project]
	rest.TableConvertor
	observer   *observer
	namespaces corelisters.NamespaceLister
	client     kubernetes.Interface
	visibility *visibility
}

var (
	_ rest.StandardStorage    = &projects{}
	_ rest.ShortNamesProvider = &projects{}
)

func newProjects(observer *observer, visibility *visibility, client kubernetes.Interface) *projects {
	type column = apiserver.Column[*projectv1.Project]
	return &projects{
		Unstored: apiserver.Unstored[*projectv1.Project]{Singular: "project"},
		TableConvertor: apiserver.Table([]column{
			{Name: "Display Name", Description: "Display name", Value: func(p *projectv1.Project) any { return p.Annotations[displayNameAnnotation] }},
			{Name: "Status", Description: "Phase of the project", Value: func(p *projectv1.Project) any { return string(p.Status.Phase) }},
			{Name: "Age", Description: "Time since the project was created", Wide: true, Value: func(p *projectv1.Project) any {
				return apiserver.Since(p.CreationTimestamp)
			}},
		}),
		observer: observer, namespaces: observer.namespaces, client: client, visibility: visibility,
	}
}

// NewList creates an empty list.
func (p *projects) NewList() runtime.Object { return &projectv1.ProjectList{} }

// ShortNames implements rest.ShortNamesProvider. Projects have no short names.
func (p *projects) ShortNames() []string { return nil }

// Get returns a project. The request is authorized in the project's namespace, so the project's
// members can read the project.
func (p *projects) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	namespace, err := p.namespaces.Get(name)
	if err != nil {
		return nil, notFound(name, err)
	}
	return fromNamespace(namespace), nil
}

// notFound converts a not-found error for a namespace to a not-found error for its project.
func notFound(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(projectv1.Resource("projects"), name)
	}
	return err
}

// List returns the projects that the user is allowed to see.
func (p *projects) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	v, err := p.visibility.of(ctx, options)
	if err != nil {
		return nil, err
	}
	namespaces, version := p.observer.index.list(v)
	list := &projectv1.ProjectList{Items: make([]projectv1.Project, 0, len(namespaces))}
	list.ResourceVersion = strconv.FormatUint(version, 10)
	for _, namespace := range namespaces {
		list.Items = append(list.Items, *fromNamespace(namespace))
	}
	return list, nil
}

// Watch returns a stream of change events for the projects that the user is allowed to see.
func (p *projects) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	v, err := p.visibility.of(ctx, options)
	if err != nil {
		return nil, err
	}
	version := ""
	initial, bookmark := false, false
	if options != nil {
		version = options.ResourceVersion
		initial = options.SendInitialEvents != nil && *options.SendInitialEvents
		bookmark = initial && options.AllowWatchBookmarks
	}
	var from uint64
	if version != "" && version != "0" {
		if from, err = strconv.ParseUint(version, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest("resourceVersion " + strconv.Quote(version) + " is not a number")
		}
	}
	return p.observer.index.watch(v, from, initial || from == 0, bookmark)
}

// Create creates a project for a user who is allowed to create any project.
func (p *projects) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	project := object.(*projectv1.Project)
	rest.FillObjectMetaSystemFields(project)
	if err := rest.BeforeCreate(strategy{}, ctx, project); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, project.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(project.Spec.Finalizers, projectv1.FinalizerOrigin) {
		project.Spec.Finalizers = append(project.Spec.Finalizers, projectv1.FinalizerOrigin)
	}
	namespace := toNamespace(project)
	namespace.UID, namespace.CreationTimestamp = "", metav1.Time{}
	created, err := p.client.CoreV1().Namespaces().Create(ctx, namespace, *options)
	if apierrors.IsAlreadyExists(err) {
		return nil, apierrors.NewAlreadyExists(projectv1.Resource("projects"), project.Name)
	}
	if err != nil {
		return nil, err
	}
	return fromNamespace(created), nil
}

// Update changes the annotations that project members are allowed to change.
func (p *projects) Update(ctx context.Context, name string, updated rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	namespace, err := p.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, false, notFound(name, err)
	}
	old := fromNamespace(namespace)
	object, err := updated.UpdatedObject(ctx, old)
	if err != nil {
		return nil, false, err
	}
	project := object.(*projectv1.Project)
	if err := rest.BeforeUpdate(strategy{}, ctx, project, old); err != nil {
		return nil, false, err
	}
	if validate != nil {
		if err := validate(ctx, project.DeepCopyObject(), old.DeepCopyObject()); err != nil {
			return nil, false, err
		}
	}
	changed, err := p.client.CoreV1().Namespaces().Update(ctx, toNamespace(project), *options)
	if err != nil {
		return nil, false, notFound(name, err)
	}
	return fromNamespace(changed), false, nil
}

// Delete deletes a project with all its objects. The project's phase is Terminating until the
// deletion is complete.
func (p *projects) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if validate != nil {
		namespace, err := p.namespaces.Get(name)
		if err != nil {
			return nil, false, notFound(name, err)
		}
		if err := validate(ctx, fromNamespace(namespace)); err != nil {
			return nil, false, err
		}
	}
	if err := p.client.CoreV1().Namespaces().Delete(ctx, name, *options); err != nil {
		return nil, false, notFound(name, err)
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, false, nil
}

// DeleteCollection always fails, because projects must be deleted one by one.
func (p *projects) DeleteCollection(context.Context, rest.ValidateObjectFunc, *metav1.DeleteOptions,
	*internalversion.ListOptions) (runtime.Object, error) {
	return nil, apierrors.NewMethodNotSupported(projectv1.Resource("projects"), "deletecollection")
}

// selector converts a request's selectors to a match function for namespaces. nil selects all
// namespaces.
func selector(options *internalversion.ListOptions) (func(*corev1.Namespace) bool, error) {
	if options == nil || (options.LabelSelector == nil || options.LabelSelector.Empty()) && (options.FieldSelector == nil || options.FieldSelector.Empty()) {
		return nil, nil
	}
	if options.FieldSelector != nil {
		for _, requirement := range options.FieldSelector.Requirements() {
			if requirement.Field != "metadata.name" && requirement.Field != "status.phase" {
				return nil, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
			}
		}
	}
	return func(namespace *corev1.Namespace) bool {
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(namespace.Labels)) {
			return false
		}
		return options.FieldSelector == nil || options.FieldSelector.Matches(fields.Set{
			"metadata.name": namespace.Name, "status.phase": string(namespace.Status.Phase),
		})
	}, nil
}
