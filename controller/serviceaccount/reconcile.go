package serviceaccount

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// createdBy is the annotation that marks token secrets created by this controller. OpenShift 3 uses
// the same value.
const createdBy, creator = "kubernetes.io/created-by", "openshift.io/create-dockercfg-secrets"

// reconcile creates a service account's token and credentials, and then references them in the
// service account.
func (s *Secrets) reconcile(ctx context.Context, key controller.Key) error {
	if key.Namespace == metav1.NamespaceSystem {
		return nil
	}
	account, live, err := controller.Live(corelisters.NewServiceAccountLister(s.accounts.GetIndexer()).ServiceAccounts(key.Namespace).Get(key.Name))
	if !live {
		return err
	}
	token, err := s.ensureToken(ctx, account)
	if err != nil || token == nil || len(token.Data[corev1.ServiceAccountTokenKey]) == 0 {
		return ignoreExpected(err) // the account is enqueued when the token is filled in
	}
	credentials, err := s.ensureCredentials(ctx, account, token)
	if err != nil {
		return ignoreExpected(err)
	}
	return ignoreExpected(s.updateReferences(ctx, account, token.Name, credentials.Name))
}

// ignoreExpected ignores errors that occur because the service account or project is being deleted.
// It requeues conflicts, because a quota conflict triggers no later event for this controller.
func ignoreExpected(err error) error {
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsConflict(err):
		return controller.RequeueAfter(time.Second)
	}
	return err
}

// ensureToken returns a service account's token secret. If there is none, ensureToken creates a
// secret that Kubernetes fills in. The secret has a random name, because a revoked token would
// become valid again under the same name.
func (s *Secrets) ensureToken(ctx context.Context, account *corev1.ServiceAccount) (*corev1.Secret, error) {
	is := func(secret *corev1.Secret) bool {
		return belongsTo(secret, account) && rank(account, secret) < rankOther
	}
	if existing := s.find(ctx, s.tokens, corev1.SecretTypeServiceAccountToken, account, is); existing.err != nil || existing.secret != nil {
		return existing.secret, existing.err
	}
	created, err := s.client.CoreV1().Secrets(account.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: generateName(account, "-token-"),
			Annotations: map[string]string{
				corev1.ServiceAccountNameKey: account.Name, corev1.ServiceAccountUIDKey: string(account.UID), createdBy: creator,
			},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create service account token: %w", err)
	}
	return created, nil
}

// lookup is the result of find. If no secret matches, secret is nil.
type lookup struct {
	secret *corev1.Secret
	err    error
}

// find returns a matching secret of a service account. It reads the cache first and falls back to
// the API server, because the cache might not contain a new secret yet.
func (s *Secrets) find(ctx context.Context, informer cache.SharedIndexInformer, secretType corev1.SecretType, account *corev1.ServiceAccount, is func(*corev1.Secret) bool) lookup {
	cached, err := informer.GetIndexer().ByIndex(byAccount, account.Namespace+"/"+account.Name)
	if err != nil {
		return lookup{err: err}
	}
	var secrets []*corev1.Secret
	for _, object := range cached {
		secrets = append(secrets, object.(*corev1.Secret))
	}
	if secret := preferred(account, secrets, is); secret != nil {
		return lookup{secret: secret}
	}
	list, err := s.client.CoreV1().Secrets(account.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(secretType)})
	if err != nil {
		return lookup{err: fmt.Errorf("list service account secrets: %w", err)}
	}
	secrets = nil
	for i := range list.Items {
		secrets = append(secrets, &list.Items[i])
	}
	return lookup{secret: preferred(account, secrets, is)}
}

// preferred returns the secret with the lowest rank. If several secrets have the same rank,
// preferred returns the secret whose name sorts first.
func preferred(account *corev1.ServiceAccount, secrets []*corev1.Secret, is func(*corev1.Secret) bool) *corev1.Secret {
	fitting := slices.DeleteFunc(slices.Clone(secrets), func(secret *corev1.Secret) bool { return !is(secret) })
	if len(fitting) == 0 {
		return nil
	}
	return slices.MinFunc(fitting, func(a, b *corev1.Secret) int {
		return cmp.Or(cmp.Compare(rank(account, a), rank(account, b)), cmp.Compare(a.Name, b.Name))
	})
}

// Secret ranks. The lowest rank is preferred.
const (
	rankReferenced = iota
	rankCreated
	rankOther
)

func rank(account *corev1.ServiceAccount, secret *corev1.Secret) int {
	switch {
	case slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == secret.Name }):
		return rankReferenced
	case secret.Annotations[createdBy] == creator:
		return rankCreated
	}
	return rankOther
}

// belongsTo reports whether a secret belongs to this service account rather than to a deleted
// account with the same name, and is not being deleted.
func belongsTo(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	uid := secret.Annotations[corev1.ServiceAccountUIDKey]
	return secret.Annotations[corev1.ServiceAccountNameKey] == account.Name && (uid == "" || uid == string(account.UID)) && secret.DeletionTimestamp == nil
}

// generateName returns a prefix for a secret name. The prefix leaves room for the random suffix.
func generateName(account *corev1.ServiceAccount, kind string) string {
	const longest = 253 - 5
	return account.Name[:min(len(account.Name), longest-len(kind))] + kind
}

// updateReferences adds references to the secrets to a service account. It removes references to
// outdated credentials.
func (s *Secrets) updateReferences(ctx context.Context, account *corev1.ServiceAccount, token, credentials string) error {
	stale := func(name string) bool {
		return name != credentials && strings.HasPrefix(name, generateName(account, dockercfgInfix)) && s.isOutdated(account, name, token)
	}
	updated := account.DeepCopy()
	updated.Secrets = slices.DeleteFunc(updated.Secrets, func(r corev1.ObjectReference) bool { return stale(r.Name) })
	updated.ImagePullSecrets = slices.DeleteFunc(updated.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return stale(r.Name) })
	for _, name := range []string{token, credentials} {
		if !slices.ContainsFunc(updated.Secrets, func(r corev1.ObjectReference) bool { return r.Name == name }) {
			updated.Secrets = append(updated.Secrets, corev1.ObjectReference{Name: name})
		}
	}
	if pull := (corev1.LocalObjectReference{Name: credentials}); !slices.Contains(updated.ImagePullSecrets, pull) {
		updated.ImagePullSecrets = append(updated.ImagePullSecrets, pull)
	}
	if equality.Semantic.DeepEqual(account, updated) {
		return nil
	}
	if _, err := s.client.CoreV1().ServiceAccounts(account.Namespace).Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("add secrets to service account: %w", err)
	}
	return nil
}

// isOutdated reports whether credentials do not exist or contain a token other than the service
// account's current token.
func (s *Secrets) isOutdated(account *corev1.ServiceAccount, credentials, token string) bool {
	secret, err := corelisters.NewSecretLister(s.credentials.GetIndexer()).Secrets(account.Namespace).Get(credentials)
	return apierrors.IsNotFound(err) || err == nil && secret.Annotations[tokenName] != "" && secret.Annotations[tokenName] != token
}
