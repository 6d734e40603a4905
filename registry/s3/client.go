package s3

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/slipway-platform/slipway/internal/version"
)

// defaultRegion is the region in signatures if none is configured. Servers other than Amazon's
// expect this region.
const defaultRegion = "us-east-1"

// A request to an unreachable server fails after at most attempts * dialTimeout and about 3 s of
// delays. minio's defaults, 10 attempts of 30 s, would block pushes and pulls for 5 minutes.
const (
	attempts    = 6
	dialTimeout = 3 * time.Second
)

// connect returns a client for the configured server. It sends no request.
func (s *settings) connect() (*minio.Core, error) {
	host, secure, err := s.address()
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	if s.skipVerify && secure {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	}
	client, err := minio.NewCore(host, &minio.Options{
		Creds: s.credentials(), Secure: secure, Region: s.signingRegion(), BucketLookup: s.lookup(), Transport: transport,
		MaxRetries: attempts,
	})
	if err != nil {
		return nil, err
	}
	client.SetS3EnableDualstack(s.dualStack)
	if s.accelerate {
		client.SetS3TransferAccelerate("s3-accelerate.amazonaws.com")
	}
	if s.userAgent != "" {
		client.SetAppInfo(s.userAgent, version.Slipway())
	}
	return client, nil
}

// signingRegion returns the region to use in signatures.
func (s *settings) signingRegion() string {
	if s.region == "" {
		return defaultRegion
	}
	return s.region
}

// address returns the host that receives the requests, with the port if the settings contain a
// port, and whether the requests use HTTPS.
func (s *settings) address() (host string, secure bool, err error) {
	switch {
	case s.endpoint == "" && s.fips && s.dualStack:
		return "s3-fips.dualstack." + s.region + ".amazonaws.com", s.secure, nil
	case s.endpoint == "" && s.fips:
		return "s3-fips." + s.region + ".amazonaws.com", s.secure, nil
	case s.endpoint == "":
		return "s3.amazonaws.com", s.secure, nil // the client replaces it with the region's host
	case !strings.Contains(s.endpoint, "://"):
		return s.endpoint, s.secure, nil
	}
	u, err := url.Parse(s.endpoint)
	if err != nil {
		return "", false, err
	}
	return u.Host, u.Scheme == "https", nil
}

// credentials returns the configured credentials. If there are none, it returns the credentials
// that Amazon's own tools use. They come from environment variables, from a file, or from the role
// of the machine or pod.
func (s *settings) credentials() *credentials.Credentials {
	switch {
	case s.accessKey != "" && s.v4:
		return credentials.NewStaticV4(s.accessKey, s.secretKey, s.sessionToken)
	case s.accessKey != "":
		return credentials.NewStaticV2(s.accessKey, s.secretKey, s.sessionToken)
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Transport: http.DefaultTransport}},
	})
}

// lookup determines whether URLs contain the bucket in their path or in their host. If this is not
// configured, URLs for servers other than Amazon's contain the bucket in their path, as in
// OpenShift 3.
func (s *settings) lookup() minio.BucketLookupType {
	switch {
	case s.pathStyle != nil && *s.pathStyle:
		return minio.BucketLookupPath
	case s.endpoint == "":
		return minio.BucketLookupAuto
	case s.pathStyle != nil:
		return minio.BucketLookupDNS
	}
	return minio.BucketLookupPath
}

// isRegion reports whether the client supports an Amazon region. The client silently replaces an
// unsupported region with a default region.
func isRegion(region string) bool {
	client, err := minio.New("s3.amazonaws.com", &minio.Options{Creds: credentials.NewStaticV4("a", "b", ""), Region: region, Secure: true})
	if err != nil {
		return false
	}
	// Presign sends no request, so there is nothing to cancel.
	target, err := client.Presign(context.Background(), http.MethodGet, "bucket", "object", redirectPeriod, nil)
	return err == nil && strings.Contains(target.Host, "."+region+".")
}
