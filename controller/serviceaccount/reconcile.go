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

// madeBy marks the token secrets that are made here, as OpenShift 3 marked them.
const madeBy, us = "kubernetes.io/created-by", "openshift.io/create-dockercfg-secrets"

// reconcile does the next step for one account: a token, credentials of it, and their names in the account.
func (s *Secrets) reconcile(ctx context.Context, key controller.Key) error {
	account, err := corelisters.NewServiceAccountLister(s.accounts.GetIndexer()).ServiceAccounts(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || key.Namespace == metav1.NamespaceSystem {
		return nil
	}
	if err != nil || account.DeletionTimestamp != nil {
		return err
	}
	token, err := s.token(ctx, account)
	if err != nil || token == nil || len(token.Data[corev1.ServiceAccountTokenKey]) == 0 {
		return expected(err) // the account comes again when Kubernetes has filled the token in
	}
	credentials, err := s.login(ctx, account, token)
	if err != nil {
		return expected(err)
	}
	return expected(s.refer(ctx, account, token.Name, credentials.Name))
}

// expected leaves out what happens while others remove the account or its project, or change the secret. What others have changed is looked at again:
// the conflict may have been about a quota, whose change brings nothing here.
func expected(err error) error {
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsConflict(err):
		return controller.After(time.Second)
	}
	return err
}

// token finds the account's token secret, or makes one for Kubernetes to fill in. Its name is random: a token that has
// been revoked would be valid again under the same name.
func (s *Secrets) token(ctx context.Context, account *corev1.ServiceAccount) (*corev1.Secret, error) {
	is := func(secret *corev1.Secret) bool { return ofAccount(secret, account) && rank(account, secret) < notOurs }
	if found := s.find(ctx, s.tokens, corev1.SecretTypeServiceAccountToken, account, is); found.err != nil || found.secret != nil {
		return found.secret, found.err
	}
	made, err := s.client.CoreV1().Secrets(account.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: prefix(account, "-token-"),
			Annotations: map[string]string{
				corev1.ServiceAccountNameKey: account.Name, corev1.ServiceAccountUIDKey: string(account.UID), madeBy: us,
			},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make token of service account: %w", err)
	}
	return made, nil
}

// found is the secret that was looked for, if there is one.
type found struct {
	secret *corev1.Secret
	err    error
}

// find looks for a secret of an account in the cache, and then on the server: the cache may not know yet what was made a moment ago.
func (s *Secrets) find(ctx context.Context, known cache.SharedIndexInformer, of corev1.SecretType, account *corev1.ServiceAccount, is func(*corev1.Secret) bool) found {
	cached, err := known.GetIndexer().ByIndex(byAccount, account.Namespace+"/"+account.Name)
	if err != nil {
		return found{err: err}
	}
	var secrets []*corev1.Secret
	for _, object := range cached {
		secrets = append(secrets, object.(*corev1.Secret))
	}
	if secret := best(account, secrets, is); secret != nil {
		return found{secret: secret}
	}
	listed, err := s.client.CoreV1().Secrets(account.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(of)})
	if err != nil {
		return found{err: fmt.Errorf("list secrets of service account: %w", err)}
	}
	secrets = nil
	for i := range listed.Items {
		secrets = append(secrets, &listed.Items[i])
	}
	return found{secret: best(account, secrets, is)}
}

// best is the secret that the account should use of those that fit: one that it names already, then the first by name.
func best(account *corev1.ServiceAccount, secrets []*corev1.Secret, is func(*corev1.Secret) bool) *corev1.Secret {
	fitting := slices.DeleteFunc(slices.Clone(secrets), func(secret *corev1.Secret) bool { return !is(secret) })
	if len(fitting) == 0 {
		return nil
	}
	return slices.MinFunc(fitting, func(a, b *corev1.Secret) int {
		return cmp.Or(cmp.Compare(rank(account, a), rank(account, b)), cmp.Compare(a.Name, b.Name))
	})
}

// How well a secret suits its account.
const (
	named = iota
	made
	notOurs
)

func rank(account *corev1.ServiceAccount, secret *corev1.Secret) int {
	switch {
	case slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == secret.Name }):
		return named
	case secret.Annotations[madeBy] == us:
		return made
	}
	return notOurs
}

// ofAccount says whether a secret is this account's and not that of a former one of the same name, nor about to go.
func ofAccount(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	uid := secret.Annotations[corev1.ServiceAccountUIDKey]
	return secret.Annotations[corev1.ServiceAccountNameKey] == account.Name && (uid == "" || uid == string(account.UID)) && secret.DeletionTimestamp == nil
}

// prefix begins the names of an account's secrets, with room for the random part.
func prefix(account *corev1.ServiceAccount, kind string) string {
	const longest = 253 - 5
	return account.Name[:min(len(account.Name), longest-len(kind))] + kind
}

// refer names the secrets in the account, and no credentials that are gone or of another token.
func (s *Secrets) refer(ctx context.Context, account *corev1.ServiceAccount, token, credentials string) error {
	stale := func(name string) bool {
		return name != credentials && strings.HasPrefix(name, prefix(account, dockercfg)) && s.outdated(account, name, token)
	}
	changed := account.DeepCopy()
	changed.Secrets = slices.DeleteFunc(changed.Secrets, func(r corev1.ObjectReference) bool { return stale(r.Name) })
	changed.ImagePullSecrets = slices.DeleteFunc(changed.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return stale(r.Name) })
	for _, name := range []string{token, credentials} {
		if !slices.ContainsFunc(changed.Secrets, func(r corev1.ObjectReference) bool { return r.Name == name }) {
			changed.Secrets = append(changed.Secrets, corev1.ObjectReference{Name: name})
		}
	}
	if pull := (corev1.LocalObjectReference{Name: credentials}); !slices.Contains(changed.ImagePullSecrets, pull) {
		changed.ImagePullSecrets = append(changed.ImagePullSecrets, pull)
	}
	if equality.Semantic.DeepEqual(account, changed) {
		return nil
	}
	if _, err := s.client.CoreV1().ServiceAccounts(account.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("name secrets in service account: %w", err)
	}
	return nil
}

// outdated says whether credentials are gone, or were made of another token than the account's.
func (s *Secrets) outdated(account *corev1.ServiceAccount, credentials, token string) bool {
	secret, err := corelisters.NewSecretLister(s.credentials.GetIndexer()).Secrets(account.Namespace).Get(credentials)
	return apierrors.IsNotFound(err) || err == nil && secret.Annotations[tokenName] != "" && secret.Annotations[tokenName] != token
}
