package network

import (
	"context"
	"fmt"

	networkv1 "github.com/openshift/api/network/v1"
	networktyped "github.com/openshift/client-go/network/clientset/versioned/typed/network/v1"
	networklisters "github.com/openshift/client-go/network/listers/network/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// netIDs maintains a NetNamespace for each project and changes the project's network ID on request.
// It is not safe for concurrent use.
//
// A NetNamespace has the networkplugin.ProjectUIDAnnotation annotation, so that a new project does
// not inherit the network of a deleted project with the same name. An administrator can create a
// NetNamespace without the annotation for a future project.
type netIDs struct {
	client      networktyped.NetNamespaceInterface
	kube        coreclient.NamespaceInterface
	cached      networklisters.NetNamespaceLister
	namespaces  corelisters.NamespaceLister
	multitenant bool // true if requested changes apply

	// ofProject maps each NetNamespace to its ID, as this instance last read or wrote it. projects
	// maps each ID to the number of NetNamespaces that have it. Both maps are nil until load is
	// called.
	ofProject map[string]uint32
	projects  map[uint32]int
}

// load reads the existing IDs from the API server, because the cache might not contain the last
// change by a previous instance.
func (n *netIDs) load(ctx context.Context) error {
	list, err := n.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list NetNamespaces: %w", err)
	}
	n.ofProject, n.projects = map[string]uint32{}, map[uint32]int{}
	for _, item := range list.Items {
		n.set(item.Name, item.NetID)
	}
	return nil
}

// reconcile makes a NetNamespace match its project.
func (n *netIDs) reconcile(ctx context.Context, key controller.Key) error {
	if n.ofProject == nil {
		if err := n.load(ctx); err != nil {
			return err
		}
	}
	if n.settled(key.Name) {
		return nil
	}
	existing, err := n.client.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		n.release(key.Name)
		existing = nil
	} else if err != nil {
		return wrap(err, "get NetNamespace %q", key.Name)
	}
	project, err := n.kube.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n.removeOrphan(ctx, key.Name, existing)
	}
	if err != nil {
		return wrap(err, "get namespace %q", key.Name)
	}
	if existing != nil && !networkplugin.BelongsTo(existing.Annotations, project.UID) {
		if err := n.remove(ctx, existing); err != nil {
			return err
		}
		existing = nil
	}
	if existing == nil {
		return n.create(ctx, project)
	}
	n.set(existing.Name, existing.NetID)
	return n.change(ctx, existing, project)
}

// settled reports whether the caches show that a project needs no change. Without this check, each
// start would send two requests per project. If the caches are stale, another event follows.
func (n *netIDs) settled(project string) bool {
	namespace, err := n.namespaces.Get(project)
	if err != nil {
		return false
	}
	cached, err := n.cached.Get(project)
	if err != nil || cached.Annotations[networkv1.ChangePodNetworkAnnotation] != "" {
		return false
	}
	if cached.Annotations[networkplugin.ProjectUIDAnnotation] != string(namespace.UID) {
		return false
	}
	id, exists := n.ofProject[project]
	return exists && id == cached.NetID
}

// removeOrphan deletes the NetNamespace of a deleted project. Until the next start, it keeps a
// NetNamespace that an administrator has created for a future project.
func (n *netIDs) removeOrphan(ctx context.Context, project string, existing *networkv1.NetNamespace) error {
	if existing == nil {
		return nil
	}
	if _, exists := n.ofProject[project]; !exists {
		return nil
	}
	return n.remove(ctx, existing)
}

// remove deletes a NetNamespace unless another NetNamespace has replaced it.
func (n *netIDs) remove(ctx context.Context, namespace *networkv1.NetNamespace) error {
	err := n.client.Delete(ctx, namespace.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(namespace.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return wrap(err, "delete NetNamespace %q", namespace.Name)
	}
	n.release(namespace.Name)
	return nil
}

// create creates the NetNamespace for a new project.
func (n *netIDs) create(ctx context.Context, project *corev1.Namespace) (err error) {
	id := networkplugin.GlobalID
	if project.Name != metav1.NamespaceDefault {
		if id, err = n.free(); err != nil {
			return fmt.Errorf("allocate network ID for project %q: %w", project.Name, err)
		}
	}
	namespace := &networkv1.NetNamespace{NetName: project.Name, NetID: id}
	namespace.Name = project.Name
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, networkplugin.ProjectUIDAnnotation, string(project.UID))
	if _, err := n.client.Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return wrap(err, "create NetNamespace %q", project.Name)
	}
	n.set(project.Name, id)
	return nil
}

// change records the project of a NetNamespace. It also applies the change that the NetNamespace's
// annotation requests, and then removes the annotation.
func (n *netIDs) change(ctx context.Context, namespace *networkv1.NetNamespace, project *corev1.Namespace) error {
	changed := namespace.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, networkplugin.ProjectUIDAnnotation, string(project.UID))
	if text, requested := namespace.Annotations[networkv1.ChangePodNetworkAnnotation]; requested && n.multitenant {
		change, err := networkplugin.ParseChange(text)
		if err != nil {
			return err
		}
		if changed.NetID, err = n.changedID(namespace, change); err != nil {
			return fmt.Errorf("change network of project %q: %w", namespace.Name, err)
		}
		delete(changed.Annotations, networkv1.ChangePodNetworkAnnotation)
	}
	if equality.Semantic.DeepEqual(namespace, changed) {
		return nil
	}
	if _, err := n.client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return wrap(err, "update NetNamespace %q", namespace.Name)
	}
	n.set(namespace.Name, changed.NetID)
	return nil
}

// changedID returns the NetID that a project has after the requested change.
func (n *netIDs) changedID(namespace *networkv1.NetNamespace, change networkplugin.Change) (uint32, error) {
	switch change.Action {
	case networkplugin.Global:
		return networkplugin.GlobalID, nil
	case networkplugin.Join:
		id, exists := n.ofProject[change.Project]
		if !exists {
			return 0, fmt.Errorf("project %q has no network", change.Project)
		}
		return id, nil
	}
	if namespace.NetID != networkplugin.GlobalID && n.projects[namespace.NetID] == 1 {
		return namespace.NetID, nil // the project is already isolated
	}
	return n.free()
}

// free returns the lowest ID that no project uses.
func (n *netIDs) free() (uint32, error) {
	for id := networkplugin.FirstID; id <= networkplugin.LastID; id++ {
		if n.projects[id] == 0 {
			return id, nil
		}
	}
	return 0, fmt.Errorf("all network IDs are in use; delete projects, or join their networks")
}

// set records a project's ID.
func (n *netIDs) set(project string, id uint32) {
	n.release(project)
	n.ofProject[project] = id
	n.projects[id]++
}

// release removes a project's record. The project's ID becomes free if no other project uses it.
func (n *netIDs) release(project string) {
	id, exists := n.ofProject[project]
	if !exists {
		return
	}
	delete(n.ofProject, project)
	if n.projects[id]--; n.projects[id] == 0 {
		delete(n.projects, id)
	}
}
