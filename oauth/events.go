package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// eventSource is what events about service accounts are from, as in OpenShift 3.
const eventSource = "service-account-oauth-client-getter"

// warner writes warnings about service accounts that are no proper clients as events, where their owners see them. A warning that is there
// already is counted on, so that requests of strangers make no further objects.
func warner(kube kubernetes.Interface, report func(error)) func(context.Context, *corev1.ServiceAccount, string, string) {
	return func(ctx context.Context, account *corev1.ServiceAccount, reason, message string) {
		if err := warn(ctx, kube, account, reason, message); err != nil {
			report(fmt.Errorf("write event of service account %s/%s: %w", account.Namespace, account.Name, err))
		}
	}
}

func warn(ctx context.Context, kube kubernetes.Interface, account *corev1.ServiceAccount, reason, message string) error {
	hash := sha256.Sum256([]byte(string(account.UID) + reason + message))
	name := account.Name + "." + hex.EncodeToString(hash[:8])
	events, now := kube.CoreV1().Events(account.Namespace), metav1.Now()
	stored, err := events.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		stored.Count++
		stored.LastTimestamp = now
		if _, err = events.Update(ctx, stored, metav1.UpdateOptions{}); kerrors.IsConflict(err) {
			return nil // another request has just counted
		}
		return err
	}
	if !kerrors.IsNotFound(err) {
		return err
	}
	_, err = events.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: account.Namespace},
		InvolvedObject: corev1.ObjectReference{
			Kind: "ServiceAccount", APIVersion: "v1", Namespace: account.Namespace, Name: account.Name, UID: account.UID, ResourceVersion: account.ResourceVersion,
		},
		Reason: reason, Message: message, Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: eventSource},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if kerrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
