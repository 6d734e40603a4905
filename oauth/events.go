package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/oauth/client"
)

// eventSource is the source component of service account events. OpenShift 3 uses the same source.
const eventSource = "service-account-oauth-client-getter"

// notices records notices for service account owners as events. It writes events asynchronously, so
// that the duration of a response does not reveal which accounts exist. While the queue is full, it
// drops notices.
type notices struct {
	kube    kubernetes.Interface
	report  func(error)
	pending chan client.Notice
}

// maxNotices is the maximum length of the queue.
const maxNotices = 100

func newNotices(kube kubernetes.Interface, report func(error)) *notices {
	return &notices{kube: kube, report: report, pending: make(chan client.Notice, maxNotices)}
}

func (n *notices) add(notice client.Notice) {
	select {
	case n.pending <- notice:
	default:
	}
}

// Run records events until ctx is done.
func (n *notices) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case notice := <-n.pending:
			if err := n.write(ctx, notice); err != nil && ctx.Err() == nil {
				n.report(fmt.Errorf("write event of service account %s/%s: %w", notice.Account.Namespace, notice.Account.Name, err))
			}
		}
	}
}

func (n *notices) write(ctx context.Context, notice client.Notice) error {
	if notice.Reason == "" {
		has, err := n.hasToken(ctx, notice.Account)
		if err != nil || has {
			return err
		}
		notice.Reason, notice.Message = client.NoTokens, notice.ID()+" has no tokens"
	}
	return warn(ctx, n.kube, notice)
}

// hasToken reports whether a secret contains a token for an account. An account without such a
// secret can still be a client, because a token from a TokenRequest is valid too.
func (n *notices) hasToken(ctx context.Context, account *corev1.ServiceAccount) (bool, error) {
	secrets, err := n.kube.CoreV1().Secrets(account.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken)})
	if err != nil {
		return false, fmt.Errorf("list tokens: %w", err)
	}
	return slices.ContainsFunc(secrets.Items, func(s corev1.Secret) bool { return s.Annotations[corev1.ServiceAccountNameKey] == account.Name }), nil
}

// warn records a warning event. If the same event exists, warn increases its count.
func warn(ctx context.Context, kube kubernetes.Interface, notice client.Notice) error {
	account := notice.Account
	hash := sha256.Sum256([]byte(string(account.UID) + notice.Reason + notice.Message))
	name := account.Name + "." + hex.EncodeToString(hash[:8])
	events, now := kube.CoreV1().Events(account.Namespace), metav1.Now()
	event, err := events.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		event.Count++
		event.LastTimestamp = now
		if _, err = events.Update(ctx, event, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
			return nil // another API server has just increased the count
		}
		return err
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = events.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: account.Namespace},
		InvolvedObject: corev1.ObjectReference{
			Kind: "ServiceAccount", APIVersion: "v1", Namespace: account.Namespace, Name: account.Name, UID: account.UID, ResourceVersion: account.ResourceVersion,
		},
		Reason: notice.Reason, Message: notice.Message, Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: eventSource},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
