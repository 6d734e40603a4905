package pipeline

/** An error response from the API. */
class ApiError extends IOException {
    final int status

    ApiError(int status, String message) {
        super(message)
        this.status = status
    }

    /** Reports whether the same request might succeed later. */
    boolean isTemporary() { status >= 500 || status == 429 || status == 409 }
}
