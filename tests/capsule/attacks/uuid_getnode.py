# uuid.getnode starts programs
import uuid
print("ESCAPED", uuid.getnode(), uuid.uuid1())
