package catalogcontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

const (
	errorFetchingCatalog = "ErrorFetchingCatalog"
	errorSyncingCatalog  = "ErrorSyncingCatalog"
	fetchedCatalog       = "FetchedCatalog"
)

// minTenantRelist is the minimum interval between two fetches of a ServiceBroker's catalog.
const minTenantRelist = time.Minute

// brokerView is a broker of either kind. The namespace is empty for a ClusterServiceBroker.
type brokerView struct {
	metav1.Object
	namespace, name string
	spec            *v1beta1.CommonServiceBrokerSpec
	status          *v1beta1.CommonServiceBrokerStatus
	basic, bearer   *v1beta1.ObjectReference
}

// String returns the broker's kind and name.
func (b *brokerView) String() string {
	if b.namespace == "" {
		return fmt.Sprintf("ClusterServiceBroker %q", b.name)
	}
	return fmt.Sprintf("ServiceBroker %q", b.namespace+"/"+b.name)
}

func viewClusterBroker(broker *v1beta1.ClusterServiceBroker) *brokerView {
	view := &brokerView{Object: broker, name: broker.Name, spec: &broker.Spec.CommonServiceBrokerSpec, status: &broker.Status.CommonServiceBrokerStatus}
	if auth := broker.Spec.AuthInfo; auth != nil && auth.Basic != nil {
		view.basic = auth.Basic.SecretRef
	} else if auth != nil && auth.Bearer != nil {
		view.bearer = auth.Bearer.SecretRef
	}
	return view
}

func viewBroker(broker *v1beta1.ServiceBroker) *brokerView {
	view := &brokerView{
		Object: broker, namespace: broker.Namespace, name: broker.Name,
		spec: &broker.Spec.CommonServiceBrokerSpec, status: &broker.Status.CommonServiceBrokerStatus,
	}
	local := func(config *v1beta1.AuthConfig) *v1beta1.ObjectReference {
		if config == nil || config.SecretRef == nil {
			return nil
		}
		return &v1beta1.ObjectReference{Namespace: broker.Namespace, Name: config.SecretRef.Name}
	}
	if auth := broker.Spec.AuthInfo; auth != nil {
		view.basic, view.bearer = local(auth.Basic), local(auth.Bearer)
	}
	return view
}

// broker reads a broker from the API server. It returns nil if the broker does not exist.
func (r *reconciler) broker(ctx context.Context, key controller.Key) (*brokerView, error) {
	if key.Namespace == "" {
		broker, err := r.client.ClusterBrokers().Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		return viewClusterBroker(broker), nil
	}
	broker, err := r.client.Brokers(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return viewBroker(broker), nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// updateBrokerStatus writes the status of a broker.
func (r *reconciler) updateBrokerStatus(ctx context.Context, view *brokerView) error {
	view.status.LastConditionState = stateOf(view.status.Conditions)
	var err error
	switch broker := view.Object.(type) {
	case *v1beta1.ClusterServiceBroker:
		_, err = r.client.ClusterBrokers().UpdateStatus(ctx, broker, metav1.UpdateOptions{})
	case *v1beta1.ServiceBroker:
		_, err = r.client.Brokers(broker.Namespace).UpdateStatus(ctx, broker, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("update broker status: %w", err)
	}
	return nil
}

// reconcileBroker fetches a broker's catalog if a fetch is due. If the broker is being deleted, it
// removes the broker's classes and plans.
func (r *reconciler) reconcileBroker(ctx context.Context, key controller.Key) error {
	broker, err := r.broker(ctx, key)
	if err != nil {
		return err
	}
	if broker == nil {
		r.schedule.forget("broker", key)
		return nil
	}
	if broker.GetDeletionTimestamp() != nil {
		return r.removeBroker(ctx, broker)
	}
	if delay := r.untilRelist(broker); delay != 0 {
		return requeue(delay)
	}
	if delay := r.schedule.wait("broker", broker); delay > 0 {
		return controller.RequeueAfter(delay)
	}
	if err := r.relist(ctx, broker); err != nil {
		return r.failRelist(ctx, broker, err)
	}
	r.schedule.forget("broker", key)
	// Emit an event only for a change, not for every fetch.
	report := broker.status.ReconciledGeneration != broker.GetGeneration() ||
		!apimeta.IsStatusConditionTrue(broker.status.Conditions, v1beta1.ConditionReady)
	now := metav1.Now()
	broker.status.LastCatalogRetrievalTime, broker.status.OperationStartTime = &now, nil
	broker.status.ReconciledGeneration = broker.GetGeneration()
	apimeta.RemoveStatusCondition(&broker.status.Conditions, v1beta1.ConditionFailed)
	setCondition(&broker.status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, fetchedCatalog, "Successfully fetched catalog entries from broker.")
	if err := r.updateBrokerStatus(ctx, broker); err != nil {
		return err
	}
	if report {
		r.emit(broker.Object, "", fetchedCatalog, "Successfully fetched catalog entries from broker.")
	}
	return requeue(r.untilRelist(broker))
}

// requeue returns RequeueAfter if the delay is positive. Otherwise, the object is not requeued.
func requeue(delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	return controller.RequeueAfter(delay)
}

// untilRelist returns the delay before the next catalog fetch. It returns 0 if a fetch is due, or a
// negative value if only a change to the broker triggers a fetch.
func (r *reconciler) untilRelist(broker *brokerView) time.Duration {
	if broker.status.ReconciledGeneration != broker.GetGeneration() || broker.status.LastCatalogRetrievalTime == nil ||
		!apimeta.IsStatusConditionTrue(broker.status.Conditions, v1beta1.ConditionReady) {
		return 0
	}
	if broker.spec.RelistBehavior == v1beta1.RelistBehaviorManual {
		return -1
	}
	interval := r.timing.RelistInterval
	if broker.spec.RelistDuration != nil {
		interval = broker.spec.RelistDuration.Duration
	}
	if broker.namespace != "" {
		interval = max(interval, minTenantRelist)
	}
	return max(0, time.Until(broker.status.LastCatalogRetrievalTime.Add(interval)))
}

// failRelist records a failed catalog fetch.
func (r *reconciler) failRelist(ctx context.Context, broker *brokerView, cause error) error {
	if result, ok := r.interrupted(ctx, cause); ok {
		return result
	}
	p := classify(cause)
	reason := p.reason
	if reason == "" {
		reason = errorFetchingCatalog
	}
	message := "Error fetching catalog. " + p.message
	if reason == errorSyncingCatalog {
		message = "Error syncing catalog from ServiceBroker. " + p.message
	}
	if broker.status.OperationStartTime == nil {
		now := metav1.Now()
		broker.status.OperationStartTime = &now
	}
	if previous := apimeta.FindStatusCondition(broker.status.Conditions, v1beta1.ConditionReady); previous == nil || previous.Message != message {
		r.emit(broker.Object, corev1.EventTypeWarning, reason, message)
	}
	setCondition(&broker.status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
	if time.Since(broker.status.OperationStartTime.Time) > r.timing.RetryTimeout {
		setCondition(&broker.status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, "ErrorReconciliationRetryTimeout",
			"Stopping reconciliation retries, too much time has elapsed")
	}
	delay := r.schedule.fail("broker", broker, retryDelay(cause))
	if err := r.updateBrokerStatus(ctx, broker); err != nil {
		return err
	}
	return controller.RequeueAfter(delay)
}

// relist fetches the catalog and updates the classes and plans.
func (r *reconciler) relist(ctx context.Context, broker *brokerView) error {
	client, closeIdle, err := r.connection(ctx, broker)
	if err != nil {
		return err
	}
	defer closeIdle()
	catalog, err := client.Catalog(ctx)
	if err != nil {
		return err
	}
	offers, err := convert(broker, catalog)
	if err != nil {
		return &problem{reason: errorSyncingCatalog, message: err.Error()}
	}
	if err := r.apply(ctx, broker, offers); err != nil {
		return &problem{reason: errorSyncingCatalog, message: err.Error(), cause: err}
	}
	return nil
}

// removeBroker deletes a broker's classes and plans, and then removes the broker's finalizer.
func (r *reconciler) removeBroker(ctx context.Context, broker *brokerView) error {
	if !slices.Contains(broker.GetFinalizers(), v1beta1.Finalizer) {
		return nil
	}
	if err := r.deleteOffers(ctx, broker); err != nil {
		return err
	}
	broker.SetFinalizers(slices.DeleteFunc(broker.GetFinalizers(), func(f string) bool { return f == v1beta1.Finalizer }))
	var err error
	switch object := broker.Object.(type) {
	case *v1beta1.ClusterServiceBroker:
		_, err = r.client.ClusterBrokers().Update(ctx, object, metav1.UpdateOptions{})
	case *v1beta1.ServiceBroker:
		_, err = r.client.Brokers(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	}
	return ignoreNotFound(err)
}

func setCondition(conditions *[]metav1.Condition, of string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(conditions, metav1.Condition{Type: of, Status: status, Reason: reason, Message: strings.ToValidUTF8(message, "?")})
}

// stateOf returns the state that tables show: Ready, Failed, or the reason why the object is not
// ready.
func stateOf(conditions []metav1.Condition) string {
	if apimeta.IsStatusConditionTrue(conditions, v1beta1.ConditionFailed) {
		return v1beta1.ConditionFailed
	}
	ready := apimeta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	switch {
	case ready == nil:
		return ""
	case ready.Status == metav1.ConditionTrue:
		return v1beta1.ConditionReady
	}
	return ready.Reason
}
