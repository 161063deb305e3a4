import java.io.FileOutputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Field;
import org.apache.flink.util.SerializedThrowable;

/**
 * Writes the exception that internal/rest makes its own of, as Flink's client deserialises it. Its three texts are patched there; it has
 * neither stack frames nor the exception behind it, which only Java has the class of.
 *
 * <pre>java -cp "$FLINK_HOME/lib/*" --add-opens java.base/java.lang=ALL-UNNAMED Record.java ../../internal/rest/throwable.bin</pre>
 */
public class Record {
  public static void main(String[] args) throws Exception {
    SerializedThrowable t = new SerializedThrowable(new Exception());
    t.setStackTrace(new StackTraceElement[0]);
    set(t, SerializedThrowable.class, "originalErrorClassName", "@class@");
    set(t, SerializedThrowable.class, "serializedException", null);
    set(t, SerializedThrowable.class, "fullStringifiedStackTrace", "@stack@");
    set(t, Throwable.class, "detailMessage", "@message@");
    try (ObjectOutputStream out = new ObjectOutputStream(new FileOutputStream(args[0]))) {
      out.writeObject(t);
    }
  }

  private static void set(Object o, Class<?> c, String name, Object value) throws Exception {
    Field f = c.getDeclaredField(name);
    f.setAccessible(true);
    f.set(o, value);
  }
}
