package router

import (
	"testing"
	"time"
)

func TestOutputOfWrkIsParsed(t *testing.T) {
	const output = `Running 2s test @ http://127.0.7.1:8080/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.05ms  613.00us   7.77ms   71.45%
    Req/Sec    31.11k     3.02k   36.10k    65.00%
  Latency Distribution
     50%    0.97ms
     99%    2.98ms
  61909 requests in 2.00s, 5.90MB read
Requests/sec:  30939.52
Transfer/sec:      2.95MB
`
	got, err := readWrk(output)
	if err != nil || got.rate != 30939.52 || got.p99 != 2980*time.Microsecond {
		t.Errorf("%+v is read (%v)", got, err)
	}
	for _, failure := range []string{"  Non-2xx or 3xx responses: 7\n", "  Socket errors: connect 0, read 3, write 0, timeout 0\n"} {
		if _, err := readWrk(output + failure); err == nil {
			t.Errorf("%q is not a failure", failure)
		}
	}
}
