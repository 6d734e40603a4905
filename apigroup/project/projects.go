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

// projects is the resource projects: namespaces as far as a user may see them. Changes go to the namespace through the API server
// itself, so that its admission checks them too; who may make them is decided for the project before.
type projects struct {
	rest.TableConvertor
	observer   *observer
	namespaces corelisters.NamespaceLister
	client     kubernetes.Interface
	sight      *sight
}

var (
	_ rest.StandardStorage    = &projects{}
	_ rest.ShortNamesProvider = &projects{}
)

func newProjects(observer *observer, sight *sight, client kubernetes.Interface) *projects {
	type column = apiserver.Column[*projectv1.Project]
	return &projects{
		TableConvertor: apiserver.Table([]column{
			{Name: "Display Name", Description: "Name for people", Value: func(p *projectv1.Project) any { return p.Annotations[displayNameAnnotation] }},
			{Name: "Status", Description: "Phase of the project", Value: func(p *projectv1.Project) any { return string(p.Status.Phase) }},
			{Name: "Age", Description: "Time since the project was made", Wide: true, Value: func(p *projectv1.Project) any {
				return apiserver.Since(p.CreationTimestamp)
			}},
		}),
		observer: observer, namespaces: observer.namespaces, client: client, sight: sight,
	}
}

// New makes an empty project.
func (p *projects) New() runtime.Object { return &projectv1.Project{} }

// NewList makes an empty list.
func (p *projects) NewList() runtime.Object { return &projectv1.ProjectList{} }

// Destroy has nothing to give back.
func (p *projects) Destroy() {}

// NamespaceScoped says that projects are of the cluster.
func (p *projects) NamespaceScoped() bool { return false }

// GetSingularName is the name of one.
func (p *projects) GetSingularName() string { return "project" }

// ShortNames has none: `oc project` is a command.
func (p *projects) ShortNames() []string { return nil }

// Get reads one project; a project's rules are asked in the project, so that its members may.
func (p *projects) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	namespace, err := p.namespaces.Get(name)
	if err != nil {
		return nil, notFound(name, err)
	}
	return fromNamespace(namespace), nil
}

// notFound speaks of the project and not of its namespace.
func notFound(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(projectv1.Resource("projects"), name)
	}
	return err
}

// List shows the projects that the user may see.
func (p *projects) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	v, err := p.sight.of(ctx, options)
	if err != nil {
		return nil, err
	}
	found, version := p.observer.index.list(v)
	list := &projectv1.ProjectList{Items: make([]projectv1.Project, 0, len(found))}
	list.ResourceVersion = strconv.FormatUint(version, 10)
	for _, namespace := range found {
		list.Items = append(list.Items, *fromNamespace(namespace))
	}
	return list, nil
}

// Watch tells what comes, changes and goes among the projects that the user may see.
func (p *projects) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	v, err := p.sight.of(ctx, options)
	if err != nil {
		return nil, err
	}
	asked := ""
	initial, bookmark := false, false
	if options != nil {
		asked = options.ResourceVersion
		initial = options.SendInitialEvents != nil && *options.SendInitialEvents
		bookmark = initial && options.AllowWatchBookmarks
	}
	var from uint64
	if asked != "" && asked != "0" {
		if from, err = strconv.ParseUint(asked, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest("resourceVersion " + strconv.Quote(asked) + " is no number")
		}
	}
	return p.observer.index.watch(v, from, initial || from == 0, bookmark)
}

// Create makes a project, for those who may make any.
func (p *projects) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
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
	made, err := p.client.CoreV1().Namespaces().Create(ctx, namespace, *options)
	if apierrors.IsAlreadyExists(err) {
		return nil, apierrors.NewAlreadyExists(projectv1.Resource("projects"), project.Name)
	}
	if err != nil {
		return nil, err
	}
	return fromNamespace(made), nil
}

// Update changes a project's labels and annotations as far as its members may.
func (p *projects) Update(ctx context.Context, name string, updated rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	stored, err := p.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, false, notFound(name, err)
	}
	old := fromNamespace(stored)
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

// Delete removes a project with everything in it; that takes time, during which it is Terminating.
func (p *projects) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
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

// DeleteCollection is refused: projects go one by one.
func (p *projects) DeleteCollection(context.Context, rest.ValidateObjectFunc, *metav1.DeleteOptions, *internalversion.ListOptions) (runtime.Object, error) {
	return nil, apierrors.NewMethodNotSupported(projectv1.Resource("projects"), "deletecollection")
}

// selector makes of a request's selectors a test of namespaces; nil selects all.
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
