package pipeline

/**
 * A failed or interrupted step. If no step catches the failure, its result becomes the build's
 * result.
 */
class Failure extends RuntimeException {
    final String result

    Failure(String message, String result = 'FAILURE') {
        super(message)
        this.result = result
    }

    /** Returns the result of a build that ends with an error. */
    static String resultOf(Throwable t) { t instanceof Failure ? t.result : 'FAILURE' }
}
